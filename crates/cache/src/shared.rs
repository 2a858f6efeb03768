//! What all clones of one cache share.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;
use tollgate_core::{CacheStatus, OutputStatus, ReplicaSetId, ToolCall, ToolOutput};

use crate::CacheConfig;
use crate::flight::Flights;
use crate::key::Keyring;
use crate::scope::Scope;
use crate::stats::Counters;
use crate::store::{Entry, Store};

/// What all clones of one cache share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) keys: Keyring,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) flights: Flights,
    pub(crate) counters: Counters,
    /// One for each replica set that was ever called; there are as many as an operator configures.
    pub(crate) scopes: DashMap<ReplicaSetId, Arc<Scope>>,
}

impl Shared {
    pub(crate) fn new(config: CacheConfig, store: Arc<dyn Store>) -> Self {
        Self {
            keys: Keyring::random(config.partition),
            config,
            store,
            flights: Flights::default(),
            counters: Counters::default(),
            scopes: DashMap::new(),
        }
    }

    /// Returns the scope of a call.
    pub(crate) fn scope(&self, call: &ToolCall, now: Instant) -> Arc<Scope> {
        let set = call.tool().set();
        if let Some(scope) = self.scopes.get(set) {
            return scope.clone();
        }
        let new = || Arc::new(Scope::new(set.clone(), self.keys.set(set), now));
        self.scopes.entry(set.clone()).or_insert_with(new).clone()
    }

    /// Returns a stored answer that has not ended, and counts and notes the hit.
    pub(crate) fn find(&self, key: u128, call: &ToolCall, now: Instant) -> Option<ToolOutput> {
        let output = self.store.get(key)?.into_fresh(now)?;
        self.counters.hits.add_one();
        note(call, CacheStatus::Hit);
        Some(output)
    }

    /// Stores an answer, if it is not too large.
    pub(crate) fn keep(&self, key: u128, output: &ToolOutput, ttl: Duration, now: Instant) {
        let bytes = output.body().len() as u64;
        if bytes <= self.config.max_item_bytes && !ttl.is_zero() {
            self.store.put(key, Entry::new(output.clone(), ttl, now));
            self.counters.stored.add_one();
        }
    }

    /// Counts and notes a call that is sent without a look-up.
    pub(crate) fn bypass(&self, call: &ToolCall) {
        self.counters.bypassed.add_one();
        note(call, CacheStatus::Bypass);
    }
}

/// Writes what became of a call into its record, if anybody reads it.
pub(crate) fn note(call: &ToolCall, status: CacheStatus) {
    if let Some(record) = call.record() {
        record.set_cache(status);
    }
}

/// Says whether an answer may be given to another call: it is a success, and whole. A failure may
/// have been bad luck, and a round of an exchange belongs to who is in the exchange.
pub(crate) fn is_shareable(output: &ToolOutput) -> bool {
    !output.is_error() && output.status() == OutputStatus::Complete
}
