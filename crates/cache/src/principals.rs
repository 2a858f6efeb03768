//! The epochs of principals: part of the key of every result that is not shared.

use std::collections::HashMap;

use arc_swap::ArcSwap;

/// How often each principal was purged, by digest; those that never were are not here.
#[derive(Debug, Default)]
pub(crate) struct Principals(ArcSwap<HashMap<u128, u64>>);

impl Principals {
    /// Returns the epoch of a principal; `None` stands for all principals.
    pub(crate) fn epoch(&self, principal: Option<u128>) -> u64 {
        let principal = principal.unwrap_or_default();
        self.0.load().get(&principal).copied().unwrap_or(0)
    }

    /// Makes this principal's results unreachable.
    pub(crate) fn raise(&self, principal: u128) {
        self.0.rcu(|epochs| {
            let mut epochs = HashMap::clone(epochs);
            *epochs.entry(principal).or_default() += 1;
            epochs
        });
    }
}
