//! Stands in for the store without the feature `store`: it keeps nothing.

use std::sync::Arc;

#[expect(dead_code, reason = "no entry is kept, so none is weighed or hit")]
mod entry;

pub(crate) use entry::{Entry, RefreshGuard};

use crate::config::CacheConfig;
use crate::reason::Evictions;
use crate::stats::StoreUsage;

/// A store that keeps nothing: the feature `store` is off.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MokaStore;

#[expect(clippy::unused_self, reason = "as the store has it")]
impl MokaStore {
    /// Makes the store.
    #[must_use]
    pub const fn new(_: &CacheConfig) -> Self {
        Self
    }

    /// Returns what the store holds: nothing.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    pub(crate) fn evictions(&self) -> Evictions {
        Evictions::default()
    }

    pub(crate) const fn get(&self, _: u128) -> Option<Arc<Entry>> {
        None
    }

    pub(crate) fn put(&self, _: u128, _: Entry) -> bool {
        false
    }

    pub(crate) const fn remove(&self, _: u128) {}

    pub(crate) const fn clear(&self) {}
}
