//! Refreshes in flight.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// The keys of the refreshes in flight: at most one for each key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refreshing(Arc<Mutex<HashSet<u128>>>);

/// One refresh in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct RefreshGuard {
    refreshing: Refreshing,
    key: u128,
}

impl Refreshing {
    /// Begins the refresh of a key; `None` if one is in flight.
    pub(super) fn begin(&self, key: u128) -> Option<RefreshGuard> {
        let is_new = self.0.lock().insert(key);
        is_new.then(|| RefreshGuard {
            refreshing: self.clone(),
            key,
        })
    }
}

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.refreshing.0.lock().remove(&self.key);
    }
}
