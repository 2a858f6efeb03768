//! What all clones of one cache share.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{CacheStatus, OutputStatus, ToolCall, ToolOutput};
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::CacheConfig;
use crate::event::{Events, Happened};
use crate::evidence::Evidences;
use crate::executions::Executions;
use crate::flight::Flights;
use crate::fresh::{Busy, Gate, Lifetime, NotServed};
use crate::key::{Identity, Keyring};
use crate::principals::Principals;
use crate::reason::{BypassReason, EvictionCounters, RefusalReason};
use crate::scope::{ScopeRules, Scopes};
use crate::store::{Account, Admission, Entry, Found, Hit, Store, Watcher};
use crate::tools::{Record, Tools};
use crate::unsettled::AllUnsettled;

/// What all clones of one cache share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) keys: Keyring,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) flights: Flights,
    pub(crate) tools: Tools,
    pub(crate) scopes: Scopes,
    /// Begins as the config has it.
    pub(crate) rules: RwLock<ScopeRules>,
    pub(crate) principals: Principals,
    pub(crate) events: Arc<Events>,
    pub(crate) evictions: Arc<EvictionCounters>,
    pub(crate) evidence: Evidences,
    pub(crate) executions: Executions,
    pub(crate) unsettled: AllUnsettled,
    /// Hashes sessions.
    pub(crate) sessions: RandomState,
    /// The keys that are being fetched anew, beside their callers.
    pub(crate) refreshing: Busy,
}

/// What a look-up found.
pub(crate) enum Look {
    /// An answer that has not ended.
    Hit(Hit),
    /// An entry that has.
    Ended(Entry),
    /// One that has not, and does not answer the call all the same.
    NotServed(NotServed),
    Nothing,
}

/// How long an answer is kept, and what it took to get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) lifetime: Lifetime,
    /// When the call was dispatched.
    pub(crate) sent: Instant,
    /// How long this call took.
    pub(crate) took: Duration,
    /// How long its tool says that calls take.
    pub(crate) usual: Option<Duration>,
}

impl Shared {
    pub(crate) fn new(config: CacheConfig, store: Arc<dyn Store>, evidence: Evidences) -> Self {
        let events = Arc::new(Events::new());
        let evictions = Arc::new(EvictionCounters::default());
        store.watch(watcher(events.clone(), evictions.clone()));
        Self {
            keys: Keyring::new(&config, evidence.secret()),
            evidence,
            executions: Executions::default(),
            unsettled: AllUnsettled::default(),
            sessions: RandomState::new(),
            refreshing: Busy::default(),
            rules: RwLock::new(config.scopes.clone()),
            config,
            store,
            flights: Flights::default(),
            tools: Tools::default(),
            scopes: Scopes::new(Instant::now()),
            principals: Principals::default(),
            events,
            evictions,
        }
    }

    /// Returns the key of a call if it is made under these epochs of what it depends on.
    #[inline]
    pub(crate) fn key(&self, identity: &Identity, epochs: &[u64]) -> u128 {
        let principal_epoch = self.principals.epoch(identity.principal);
        self.keys.key(identity, principal_epoch, epochs)
    }

    /// Returns a stored answer that has not ended, for nobody's call.
    pub(crate) fn peek(&self, key: u128, now: Instant) -> Option<ToolOutput> {
        self.store.get(key)?.into_fresh(now)
    }

    /// Looks for a stored answer; counts and notes the hit, if it is one.
    // a second caller made it too large to be inlined into a hit, which then takes 1 % longer
    #[inline(always)]
    pub(crate) fn look(
        &self,
        key: u128,
        gate: &Gate,
        record: &Record,
        call: &ToolCall,
        now: Instant,
    ) -> Look {
        let Some(found) = self.store.look(key, now) else {
            return Look::Nothing;
        };
        let hit = match found {
            Found::Fresh(hit) => hit,
            Found::Ended(entry) => return Look::Ended(entry),
        };
        if let Err(reason) = gate.admits(self, key, &hit, now) {
            return Look::NotServed(reason);
        }
        if hit.number == 1 {
            record.counters.reused.add_one();
        }
        record.counters.hit(hit.cost);
        self.tell(record, || Happened::Hit);
        if let Some(record) = call.record() {
            record.set_cache(CacheStatus::Hit);
            record.set_cache_age(now.saturating_duration_since(hit.made()));
        }
        Look::Hit(hit)
    }

    /// Stores an answer, if it may be kept. If not, an older one of the same key goes too: nobody may
    /// get it who could have seen this one.
    pub(crate) fn keep(&self, key: u128, record: &Record, output: &ToolOutput, kept: Kept) {
        let Kept {
            lifetime: Lifetime { ttl, stale, stated },
            sent,
            took,
            usual,
        } = kept;
        if output.body().len() as u64 > self.config.max_item_bytes {
            return self.supersede(key, record, RefusalReason::TooLarge);
        }
        if ttl.is_zero() || sent.elapsed() >= ttl.saturating_add(stale) {
            return self.supersede(key, record, RefusalReason::NoLifetime);
        }
        let mut entry = Entry::new(output.clone(), ttl, sent)
            .with_stated(stated)
            .with_stale(stale)
            .with_cost(took)
            .with_usual_cost(usual.or_else(|| record.mean_duration()).unwrap_or(took))
            .with_account(record.account.clone());
        if let Some(odds) = record.counters.odds() {
            entry = entry.with_odds(odds);
        }
        let bytes = entry.bytes();
        match self.store.put(key, entry) {
            Admission::Stored => {
                record.counters.stored.add_one();
                self.tell(record, || Happened::Stored { bytes, ttl });
            }
            Admission::TooLarge => self.supersede(key, record, RefusalReason::TooLarge),
            Admission::TooCheap => self.supersede(key, record, RefusalReason::NotWorthIt),
        }
    }

    /// Counts a result that is not kept, and takes away the one it would have replaced.
    pub(crate) fn supersede(&self, key: u128, record: &Record, reason: RefusalReason) {
        self.store.remove(key);
        self.refuse(record, reason);
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

/// Counts what the store drops, and tells who listens.
fn watcher(events: Arc<Events>, evictions: Arc<EvictionCounters>) -> Watcher {
    Arc::new(move |entry, cause| {
        evictions.add_one(cause);
        if let Some((set, tool)) = entry.account().and_then(Account::tool) {
            let bytes = entry.bytes();
            events.tell(set, tool, || Happened::Evicted { cause, bytes });
        }
    })
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
