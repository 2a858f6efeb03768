//! Who is worse than the others: the share of calls that end well, held against theirs.
//!
//! Envoy sorts this out for a whole cluster at once, on a timer. Here each server's own calls close its
//! window, which is held against what all others did in the very same time. So there is no timer, a
//! set of 10,000 costs each call as little as a set of 10, and where all begin to fail at once, nobody
//! is worse for having been looked at first.

use std::sync::atomic::{AtomicU64, Ordering};

use super::HealthConfig;
use super::moment::Moment;

/// Calls, and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: u32,
    pub(crate) failed: u32,
}

/// The calls of a whole set, counted for ever. Only differences mean anything.
///
/// A cache line by itself: each outcome writes here, and who only reads the set is not to notice.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Totals(AtomicU64);

/// The calls of one server since its window began.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Calls in the upper half, those that failed in the lower.
    counts: AtomicU64,
    /// When it is long enough to be closed, as a [`Moment`]; 0 before its first call.
    closes: AtomicU64,
    /// The totals of the set as it began.
    began: AtomicU64,
}

/// A moment in what a set counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

impl Totals {
    #[inline]
    pub(crate) fn count(&self, failed: bool) {
        self.0.fetch_add(Tally::one(failed), Ordering::Relaxed);
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.0.load(Ordering::Relaxed))
    }

    /// Returns what there was since.
    pub(crate) fn since(&self, mark: Mark) -> Tally {
        Tally::of(self.mark().0.wrapping_sub(mark.0))
    }
}

impl Window {
    /// Counts a call that ended now; says whether it is time to [`close`](Self::close).
    #[inline]
    pub(crate) fn count(&self, failed: bool, now: Moment) -> bool {
        self.counts.fetch_add(Tally::one(failed), Ordering::Relaxed);
        now.0 >= self.closes.load(Ordering::Relaxed)
    }

    /// Begins anew if there were enough calls or too much time; returns what this server and all did
    /// meanwhile, if it was enough. Only one at a time may do this.
    pub(crate) fn close(
        &self,
        now: Moment,
        all: &Totals,
        config: &HealthConfig,
    ) -> Option<(Tally, Tally)> {
        let closes = self.closes.load(Ordering::Relaxed);
        if now.0 < closes {
            return None; // another call was first
        }
        let own = Tally::of(self.counts.load(Ordering::Relaxed));
        let is_enough = own.calls >= config.min_calls;
        let last = Moment(closes).after(config.window * (LONGEST - 1));
        if closes != 0 && !is_enough && now < last {
            return None;
        }
        let total = all.0.load(Ordering::Relaxed);
        self.counts.store(0, Ordering::Relaxed);
        let began = self.began.swap(total, Ordering::Relaxed);
        self.closes
            .store(now.after(config.window).0, Ordering::Relaxed);
        (closes != 0 && is_enough).then(|| (own, Tally::of(total.wrapping_sub(began))))
    }

    /// Forgets all: the window begins with the next call.
    pub(crate) fn clear(&self) {
        self.closes.store(0, Ordering::Relaxed);
    }
}

impl Tally {
    const fn one(failed: bool) -> u64 {
        (1 << 32) | failed as u64
    }

    const fn of(counts: u64) -> Self {
        Self {
            calls: (counts >> 32) as u32,
            failed: counts as u32,
        }
    }

    /// Returns what is left without the calls of one server.
    const fn without(self, own: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(own.calls),
            failed: self.failed.saturating_sub(own.failed),
        }
    }

    /// Says whether most calls of the others failed, where this many of one server's own did and none
    /// of them ended well. Nobody calls the others: then nothing is known of them.
    pub(crate) const fn others_fail(self, own_failed: u32) -> bool {
        let own = Self {
            calls: own_failed,
            failed: own_failed,
        };
        let others = self.without(own);
        others.failed as u64 * 2 > others.calls as u64
    }

    const fn good(self) -> u64 {
        self.calls.saturating_sub(self.failed) as u64
    }

    /// Returns the share of calls that ended well, in percent, rounded down.
    pub(crate) const fn percent(self) -> u64 {
        match self.calls {
            0 => 0,
            calls => self.good() * 100 / calls as u64,
        }
    }
}

/// Says what the others did, if a server did so much worse that it is an outlier.
///
/// The mean is that of the others' calls, so that the server which is judged does not pull it down to
/// itself: of three, one that always fails would else be 67 points below the mean instead of 100.
pub(crate) fn worse_than(
    own: Tally,
    all: Tally,
    servers: u32,
    config: &HealthConfig,
) -> Option<Tally> {
    let points = config.outlier?;
    let others = all.without(own);
    let needed = u64::from(config.min_calls) * u64::from(config.min_servers.saturating_sub(1));
    if servers < config.min_servers || u64::from(others.calls) < needed {
        return None;
    }
    // own share + points < the others' share, without a division
    let (mine, theirs) = (u128::from(own.calls), u128::from(others.calls));
    let left = u128::from(own.good()) * theirs * 100 + u128::from(points) * mine * theirs;
    let right = u128::from(others.good()) * mine * 100;
    (left < right).then_some(others)
}

/// A window that never gets its calls is thrown away after so many times its length: what failed an
/// hour ago says nothing of now.
const LONGEST: u32 = 6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn tally(calls: u32, failed: u32) -> Tally {
        Tally { calls, failed }
    }

    /// Who of these servers, of `calls` calls each, is an outlier.
    fn outliers(failed: &[u32], calls: u32, config: &HealthConfig) -> Vec<usize> {
        let servers = u32::try_from(failed.len()).unwrap();
        let all = tally(calls * servers, failed.iter().sum());
        (0..failed.len())
            .filter(|i| worse_than(tally(calls, failed[*i]), all, servers, config).is_some())
            .collect()
    }

    const NOBODY: [usize; 0] = [];

    #[test]
    fn one_that_is_much_worse_is_found_in_a_set_of_three() {
        let config = HealthConfig::default();
        assert_eq!(outliers(&[0, 10, 0], 20, &config), [1]);
        assert_eq!(outliers(&[0, 6, 0], 20, &config), NOBODY, "30 points");
        assert_eq!(outliers(&[0, 7, 0], 20, &config), [1], "35 points");
        assert_eq!(outliers(&[0, 20], 20, &config), NOBODY, "two servers");
        assert_eq!(outliers(&[0, 20], 20, &config.with_min_servers(2)), [1]);
        assert_eq!(outliers(&[0, 19, 0], 19, &config), NOBODY, "too few calls");
        let off = config.with_outlier(None);
        assert_eq!(outliers(&[0, 20, 0], 20, &off), NOBODY);
    }

    #[test]
    fn where_all_fail_nobody_is_worse() {
        let config = HealthConfig::default();
        assert_eq!(outliers(&[20, 20, 20, 20], 20, &config), NOBODY);
        assert_eq!(outliers(&[14, 15, 16, 20], 20, &config), NOBODY);
    }

    #[test]
    fn a_window_closes_when_it_is_long_and_large_enough() {
        let config = HealthConfig::default();
        let (window, all) = (Window::default(), Totals::default());
        let count = |at, failed| {
            all.count(failed);
            let due = window.count(failed, Moment(at));
            due.then(|| window.close(Moment(at), &all, &config))
                .flatten()
        };
        // the first call begins it, and is not part of it
        for at in 0..30 {
            assert_eq!(count(1 + at, true), None, "too short");
        }
        // another server's
        all.0.fetch_add(2 * Tally::one(false), Ordering::Relaxed);
        let closed = (tally(30, 29), tally(32, 29));
        assert_eq!(count(10_001, false), Some(closed));
        assert_eq!(count(20_001, false), None, "too few");
        for at in 0..18 {
            assert_eq!(count(30_000 + at, false), None, "too few");
        }
        let closed = (tally(20, 1), tally(20, 1));
        assert_eq!(count(30_100, true), Some(closed));
    }

    #[test]
    fn a_window_that_never_gets_its_calls_is_thrown_away() {
        let config = HealthConfig::default();
        let (window, all) = (Window::default(), Totals::default());
        let count = |at, failed| {
            all.count(failed);
            let due = window.count(failed, Moment(at));
            due.then(|| window.close(Moment(at), &all, &config))
                .flatten()
        };
        for at in 0..10 {
            assert_eq!(count(1 + at, true), None);
        }
        assert_eq!(count(60_001, false), None);
        for at in 0..19 {
            assert_eq!(count(60_002 + at, false), None);
        }
        let closed = (tally(20, 0), tally(20, 0));
        assert_eq!(count(70_100, false), Some(closed));
    }

    proptest! {
        #[test]
        fn the_best_is_never_an_outlier_and_whoever_is_one_fails_more_than_the_margin(
            failed in prop::collection::vec(0u32..=100, 1..12),
            points in 1u32..=100,
        ) {
            let config = HealthConfig::default().with_outlier(Some(points));
            let found = outliers(&failed, 100, &config);
            let best = failed.iter().min().copied().unwrap();
            for place in found {
                prop_assert!(failed[place] > best + points, "{} of {:?}", place, failed);
            }
        }

        #[test]
        fn it_is_found_however_calls_are_spread(
            own in 20u32..1_000, others in 40u32..1_000_000, mean in 0u32..=100,
        ) {
            let config = HealthConfig::default();
            let theirs = tally(others, others / 100 * (100 - mean));
            let all = tally(own + others, own + theirs.failed);
            let found = worse_than(tally(own, own), all, 3, &config).is_some();
            let share = theirs.good() * 100;
            prop_assert_eq!(found, share > u64::from(others) * 30);
        }
    }
}
