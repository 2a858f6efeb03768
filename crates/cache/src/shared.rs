//! What all clones of one cache share.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{CacheStatus, OutputStatus, ToolCall, ToolOutput};
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::CacheConfig;
use crate::evidence::Evidences;
use crate::executions::Executions;
use crate::flight::Flights;
use crate::fresh::{Expiry, Gate};
use crate::key::{Identity, Keyring};
use crate::observed::Place;
use crate::open_tasks::OpenTasks;
use crate::principals::Principals;
use crate::reason::RefusalReason;
use crate::scope::{ScopeRules, Scopes};
use crate::store::{Entry, MokaStore};
use crate::tools::{Record, Tools};
use crate::unsettled::AllUnsettled;

/// What all clones of one cache share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) keys: Keyring,
    pub(crate) store: MokaStore,
    pub(crate) flights: Flights,
    pub(crate) tools: Tools,
    pub(crate) scopes: Scopes,
    /// At first those of the config.
    pub(crate) rules: RwLock<ScopeRules>,
    pub(crate) principals: Principals,
    pub(crate) evidence: Evidences,
    pub(crate) executions: Executions,
    pub(crate) unsettled: AllUnsettled,
    pub(crate) open_tasks: OpenTasks,
    /// Hashes sessions.
    pub(crate) sessions: RandomState,
}

/// The result of a look-up.
pub(crate) enum Look {
    /// An entry that answers the call.
    Hit(Arc<Entry>),
    /// An entry whose lifetime, its own or the learned one, has ended.
    Ended(Arc<Entry>),
    /// The call is executed to verify the entry.
    Verify,
    Nothing,
}

/// An answer that was just received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) output: &'a ToolOutput,
    /// When the call was dispatched.
    pub(crate) sent: Instant,
    /// How long the call took.
    pub(crate) took: Duration,
    /// The duration that the tool declares.
    pub(crate) declared: Option<Duration>,
    /// A stored result would have answered the call.
    pub(crate) verifies: bool,
    /// Where it was executed; `None` if others ran at the same time.
    pub(crate) place: Option<&'a Place>,
}

impl Shared {
    pub(crate) fn new(config: CacheConfig, store: MokaStore, evidence: Evidences) -> Self {
        Self {
            keys: Keyring::new(&config, evidence.secret),
            evidence,
            executions: Executions::default(),
            unsettled: AllUnsettled::default(),
            open_tasks: OpenTasks::default(),
            sessions: RandomState::new(),
            rules: RwLock::new(config.scopes.clone()),
            config,
            store,
            flights: Flights::default(),
            tools: Tools::default(),
            scopes: Scopes::new(Instant::now()),
            principals: Principals::default(),
        }
    }

    /// Returns the key of a call under these epochs of what it depends on.
    pub(crate) fn key(&self, identity: &Identity, epochs: &[u64]) -> u128 {
        let principal_epoch = self.principals.epoch(identity.principal);
        self.keys.key(identity, principal_epoch, epochs)
    }

    /// Looks for a stored answer; counts and records the hit, if it is one.
    pub(crate) fn look(
        &self,
        key: u128,
        gate: &Gate,
        record: &Record,
        call: &ToolCall,
        now: Instant,
    ) -> Look {
        let look = match self.store.get(key) {
            None => Look::Nothing,
            Some(entry) if entry.is_fresh(now) => gate.admit(self, key, entry, now),
            Some(entry) => Look::Ended(entry),
        };
        let Look::Hit(entry) = &look else {
            return look;
        };
        record.count(|counts| {
            counts.hits += 1;
            counts.saved += entry.cost;
        });
        if let Some(stats) = &call.tool().stats {
            stats.count_cached();
        }
        if let Some(record) = &call.record {
            record.with(|facts| {
                facts.cache = CacheStatus::Hit;
                facts.cache_age = Some(entry.age(now));
            });
        }
        look
    }

    /// Stores an answer, if it may be kept. If not, an older one of the same key is removed too: it
    /// must not be served after this one.
    pub(crate) fn keep(&self, key: u128, record: &Record, received: &Received<'_>, expiry: Expiry) {
        let Received {
            output, sent, took, ..
        } = *received;
        if self.is_too_large(output) {
            return self.supersede(key, record, RefusalReason::TooLarge);
        }
        let limit = expiry.ttl.saturating_add(expiry.stale);
        if expiry.ttl.is_zero() || sent.elapsed() >= limit {
            return self.supersede(key, record, RefusalReason::NoLifetime);
        }
        let usual = received.declared.unwrap_or(took);
        let entry = Entry::new(output, expiry, sent, took, usual);
        if self.store.put(key, entry) {
            record.count(|counts| counts.stored += 1);
        } else {
            record.refuse(RefusalReason::TooLarge);
        }
    }

    /// Returns `true` if an answer is never kept because of its size.
    pub(crate) fn is_too_large(&self, output: &ToolOutput) -> bool {
        output.body().len() as u64 > self.config.max_item_bytes
    }

    /// Counts a result that is not kept, and removes the one it would have replaced.
    pub(crate) fn supersede(&self, key: u128, record: &Record, reason: RefusalReason) {
        self.store.remove(key);
        record.refuse(reason);
    }
}

/// Writes the cache's part into the record of a call, if it has one.
pub(crate) fn note(call: &ToolCall, status: CacheStatus) {
    if let Some(record) = &call.record {
        record.with(|facts| facts.cache = status);
    }
}

/// Writes which state a call reads or writes into its record, if that wants decisions.
pub(crate) fn note_scope(call: &ToolCall, describe: impl FnOnce() -> String) {
    if let Some(record) = &call.record
        && record.wants_decisions()
    {
        let scope = describe();
        record.with(|facts| facts.cache_scope = Some(scope));
    }
}

/// Returns why an answer may not be given to another call, if so. It must be a success, as a
/// failure may be transient, and complete, as a round of an exchange belongs to its own call.
pub(crate) fn unshareable(output: &ToolOutput) -> Option<RefusalReason> {
    let failed = output.is_error().then_some(RefusalReason::ToolError);
    let is_partial = output.status() != OutputStatus::Complete;
    failed.or_else(|| is_partial.then_some(RefusalReason::Incomplete))
}
