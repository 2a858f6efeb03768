//! The health of a set: how many of its servers are unfit, and how many may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_core::{ReplicaSetId, ServerId};
use tokio::time::Instant;

use super::HealthConfig;
use super::moment::Moment;
use super::observer::Observer;
use super::outlier::Totals;
use super::panic::panics;
use super::state::HealthChange;
use super::word::Word;
use crate::events::RouteEvents;

/// What the sets of one pool share of their health.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) config: HealthConfig,
    pub(crate) observer: Observer,
    made: Instant,
}

/// What the servers of one set share of their health. It outlives changes of the set.
#[derive(Debug)]
pub(crate) struct SetHealth {
    id: ReplicaSetId,
    pool: Health,
    counts: AtomicU64,
    pub(super) totals: Totals,
}

/// How many servers a set has, and how they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) servers: u32,
    pub(crate) ejected: u32,
    /// Ejected or away.
    pub(crate) unfit: u32,
}

impl Health {
    /// Takes settings that were checked, and where changes are told.
    pub(crate) fn of_valid(config: HealthConfig, events: Arc<RouteEvents>) -> Self {
        Self {
            config,
            observer: Observer::new(events),
            made: Instant::now(),
        }
    }
}

impl SetHealth {
    pub(crate) fn new(id: ReplicaSetId, pool: Health) -> Self {
        Self {
            id,
            pool,
            counts: AtomicU64::new(0),
            totals: Totals::default(),
        }
    }

    #[inline]
    pub(crate) const fn config(&self) -> &HealthConfig {
        &self.pool.config
    }

    /// Tells whoever wants to know what changed about a server.
    pub(crate) fn tell(&self, server: &ServerId, change: Option<HealthChange>) {
        if let Some(change) = change {
            self.pool.observer.tell(&self.id, server, change);
        }
    }

    pub(crate) fn moment(&self, now: Instant) -> Moment {
        let since = Moment::of(now.saturating_duration_since(self.pool.made));
        Moment(since.0.saturating_add(1))
    }

    #[inline]
    pub(crate) fn counts(&self) -> Counts {
        Counts::of(self.counts.load(Ordering::Relaxed))
    }

    /// Says whether reads are to be spread over ejected servers too.
    #[inline]
    pub(crate) fn panics(&self) -> bool {
        panics(self.counts(), self.config().panic)
    }

    /// Counts what a server's change of word changes here. Changes of one server come one after
    /// another, so no count is ever below what it is made of.
    pub(super) fn changed(&self, old: Word, new: Word) {
        let (old, new) = (Counts::one(old), Counts::one(new));
        if old != new {
            let change = new.packed().wrapping_sub(old.packed());
            self.counts.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Takes a place among the ejected, if one is left: then the ejection is counted, and its server's
    /// change of word must not be counted again.
    pub(super) fn try_eject(&self) -> bool {
        let taken = Counts {
            servers: 0,
            ejected: 1,
            unfit: 1,
        };
        let eject = |counts| {
            let may = may_eject(Counts::of(counts), self.config().max_ejected);
            may.then_some(counts + taken.packed())
        };
        self.counts
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, eject)
            .is_ok()
    }

    /// Says whether one more server can be counted.
    pub(super) fn has_room(&self) -> bool {
        self.counts().servers < Counts::MOST
    }
}

/// Says whether one more server may be ejected: not more than the share, but always one, and never
/// the last that is fit.
const fn may_eject(counts: Counts, max_percent: u32) -> bool {
    let share = counts.servers as u64 * max_percent as u64 / 100;
    let most = if share > 1 { share } else { 1 };
    let fit = counts.servers.saturating_sub(counts.unfit);
    (counts.ejected as u64) < most && fit > 1
}

impl Counts {
    const BITS: u32 = 21;
    const MOST: u32 = (1 << Self::BITS) - 1;

    fn of(packed: u64) -> Self {
        let part = |at: u32| (packed >> (at * Self::BITS)) as u32 & Self::MOST;
        Self {
            servers: part(0),
            ejected: part(1),
            unfit: part(2),
        }
    }

    /// What one server counts for.
    const fn one(word: Word) -> Self {
        let is_member = word.has(Word::MEMBER);
        Self {
            servers: is_member as u32,
            ejected: (is_member && word.has(Word::EJECTED)) as u32,
            unfit: (is_member && word.has(Word::UNFIT)) as u32,
        }
    }

    const fn packed(self) -> u64 {
        self.servers as u64
            | (self.ejected as u64) << Self::BITS
            | (self.unfit as u64) << (2 * Self::BITS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn eject_all(servers: u32, away: u32, percent: u32) -> u32 {
        let mut counts = Counts {
            servers,
            ejected: 0,
            unfit: away,
        };
        while may_eject(counts, percent) {
            counts.ejected += 1;
            counts.unfit += 1;
        }
        counts.ejected
    }

    #[test]
    fn one_may_be_ejected_but_never_the_last() {
        let most = |servers| eject_all(servers, 0, 30);
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 10, 1_000].map(most),
            [0, 0, 1, 1, 1, 2, 3, 300]
        );
        assert_eq!(eject_all(10, 0, 100), 9);
        assert_eq!(eject_all(3, 2, 100), 0, "the others are away");
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(servers in 0..=Counts::MOST, ejected in 0..=Counts::MOST, unfit in 0..=Counts::MOST) {
            let counts = Counts { servers, ejected, unfit };
            prop_assert_eq!(Counts::of(counts.packed()), counts);
        }

        #[test]
        fn one_is_always_left(servers in 1u32..2_000, away in 0u32..2_000, percent in 1u32..=100) {
            let away = away.min(servers);
            let ejected = eject_all(servers, away, percent);
            prop_assert!(away == servers || ejected + away < servers);
            prop_assert!(ejected <= 1.max(servers * percent / 100));
        }
    }
}
