//! Looking into a cache, and emptying it.

use std::sync::Arc;

use tollgate_core::ReplicaSetId;

use crate::shared::Shared;
use crate::stats::CacheStats;

/// Looks into a cache and empties it. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct CacheHandle {
    shared: Arc<Shared>,
}

impl CacheHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns what the cache did and what it keeps. Does the store's pending housekeeping first:
    /// meant for dashboards, not for every call.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.shared.counters.snapshot(self.shared.store.usage())
    }

    /// Forgets everything. What running reads bring back is not kept either.
    pub fn purge_all(&self) {
        for scope in &self.shared.scopes {
            scope.raise();
        }
        self.shared.store.clear();
    }

    /// Forgets everything that was read from a replica set. What running reads bring back is not
    /// kept either.
    pub fn purge_set(&self, set: &ReplicaSetId) {
        if let Some(scope) = self.shared.scopes.get(set) {
            scope.raise();
        }
    }
}
