//! What all clones of one cache share.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{CacheStatus, OutputStatus, ToolCall, ToolOutput};

use crate::CacheConfig;
use crate::event::{Events, Happened};
use crate::flight::Flights;
use crate::key::{Identity, Keyring};
use crate::principals::Principals;
use crate::reason::{BypassReason, RefusalReason};
use crate::scope::Scopes;
use crate::store::{Entry, Store};
use crate::tools::{Record, Tools, Version};

/// What all clones of one cache share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) keys: Keyring,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) flights: Flights,
    pub(crate) tools: Tools,
    pub(crate) scopes: Scopes,
    pub(crate) principals: Principals,
    pub(crate) events: Events,
}

impl Shared {
    pub(crate) fn new(config: CacheConfig, store: Arc<dyn Store>) -> Self {
        Self {
            keys: Keyring::random(config.partition),
            config,
            store,
            flights: Flights::default(),
            tools: Tools::default(),
            scopes: Scopes::new(Instant::now()),
            principals: Principals::default(),
            events: Events::new(),
        }
    }

    /// Returns what is known of the call's tool.
    pub(crate) fn version(&self, call: &ToolCall) -> Arc<Version> {
        let rules = &self.config.scopes;
        self.tools
            .version(call.tool(), &self.keys, &self.scopes, rules)
    }

    /// Returns the key of a call if it is made under these epochs of what it depends on.
    pub(crate) fn key(&self, identity: &Identity, epochs: &[u64]) -> u128 {
        let principal_epoch = self.principals.epoch(identity.principal);
        self.keys.key(identity, principal_epoch, epochs)
    }

    /// Returns a stored answer that has not ended, and counts and notes the hit.
    pub(crate) fn find(
        &self,
        key: u128,
        record: &Record,
        call: &ToolCall,
        now: Instant,
    ) -> Option<ToolOutput> {
        let output = self.store.get(key)?.into_fresh(now)?;
        record.counters.hits.add_one();
        self.tell(record, || Happened::Hit);
        note(call, CacheStatus::Hit);
        Some(output)
    }

    /// Stores an answer, if it may be kept.
    pub(crate) fn keep(
        &self,
        key: u128,
        record: &Record,
        output: &ToolOutput,
        ttl: Duration,
        now: Instant,
    ) {
        if output.body().len() as u64 > self.config.max_item_bytes {
            self.refuse(record, RefusalReason::TooLarge);
        } else if ttl.is_zero() {
            self.refuse(record, RefusalReason::NoLifetime);
        } else {
            let entry = Entry::new(output.clone(), ttl, now);
            let bytes = entry.bytes();
            self.store.put(key, entry);
            record.counters.stored.add_one();
            self.tell(record, || Happened::Stored { bytes, ttl });
        }
    }

    /// Counts a result that is not kept.
    pub(crate) fn refuse(&self, record: &Record, reason: RefusalReason) {
        record.counters.refusals.add_one(reason);
        self.tell(record, || Happened::Refused(reason));
    }

    /// Counts and notes a call that is sent without a look-up.
    pub(crate) fn bypass(&self, record: &Record, call: &ToolCall, reason: BypassReason) {
        record.counters.bypasses.add_one(reason);
        self.tell(record, || Happened::Bypassed(reason));
        if let Some(record) = call.record() {
            record.set_cache_bypass(reason.as_str());
        }
    }

    /// Tells who listens.
    pub(crate) fn tell(&self, record: &Record, what: impl FnOnce() -> Happened) {
        self.events.tell(&record.set, &record.tool, what);
    }
}

/// Writes what became of a call into its record, if anybody reads it.
pub(crate) fn note(call: &ToolCall, status: CacheStatus) {
    if let Some(record) = call.record() {
        record.set_cache(status);
    }
}

/// Says why an answer may not be given to another call, if so: it is a success, and whole, or
/// else a failure may have been bad luck, and a round of an exchange belongs to who is in it.
pub(crate) fn unshareable(output: &ToolOutput) -> Option<RefusalReason> {
    if output.is_error() {
        Some(RefusalReason::ToolError)
    } else if output.status() != OutputStatus::Complete {
        Some(RefusalReason::Incomplete)
    } else {
        None
    }
}
