//! The limits of all principals, or of all tools.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

use super::lane::{Lane, Reading};
use super::quota::Rate;

/// Limits by key, made when first needed, dropped when they hold nothing.
#[derive(Debug)]
pub(crate) struct Lanes<K: Eq + Hash> {
    lanes: DashMap<K, Arc<Lane>>,
    max: usize,
}

impl<K: Clone + Eq + Hash> Lanes<K> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            lanes: DashMap::new(),
            max,
        }
    }

    /// Returns the limit of a key, making it if need be; `None` if the rate is none.
    pub(crate) fn lane<Q>(
        &self,
        key: &Q,
        own: impl FnOnce() -> K,
        rate: impl FnOnce() -> Option<Rate>,
    ) -> Option<Arc<Lane>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(entry) = self.lanes.get(key) {
            return Some(entry.value().clone());
        }
        self.make(own(), rate()?)
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Drops what is not kept and nobody uses right now.
    pub(crate) fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.lanes
            .retain(|key, lane| keep(key) || Arc::strong_count(lane) > 1);
    }

    pub(crate) fn read(&self) -> Vec<(K, Reading)> {
        self.lanes
            .iter()
            .map(|entry| (entry.key().clone(), entry.value().read()))
            .collect()
    }

    #[cold]
    fn make(&self, key: K, rate: Rate) -> Option<Arc<Lane>> {
        if self.lanes.len() >= self.max {
            self.prune();
        }
        let lane = Arc::new(Lane::new(rate)?);
        Some(self.lanes.entry(key).or_insert(lane).clone())
    }

    /// Drops what holds nothing: a limit nobody uses, with all its cells, is as good as a new one.
    /// If that is not a quarter, room is made all the same, among those nobody uses right now: who
    /// can be a thousand principals cannot be held to a rate anyway, and must not fill the memory.
    fn prune(&self) {
        self.lanes
            .retain(|_, lane| Arc::strong_count(lane) > 1 || !lane.is_idle());
        let aim = self.max - self.max.div_ceil(4);
        let mut too_many = self.lanes.len().saturating_sub(aim);
        if too_many == 0 {
            return;
        }
        self.lanes.retain(|_, lane| {
            let kept = too_many == 0 || Arc::strong_count(lane) > 1;
            too_many -= usize::from(!kept);
            kept
        });
    }
}
