//! The calls of the last while, counted: what shares are taken of.
//!
//! A ring of ten counters, each for a tenth of the window. A counter remembers which tenth it is
//! for, so nothing has to be moved or cleared as time passes: a count is either of this window, or
//! overwritten, or not looked at. The window so holds the tenth that runs and the nine before it.

use std::time::Duration;

use tokio::time::Instant;

use crate::mark::Mark;

/// How many counters a window has.
const TENTHS: u64 = 10;

/// The calls of the last while.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    origin: Instant,
    tenth: Duration,
    ring: [Counter; TENTHS as usize],
}

#[derive(Debug, Clone, Default)]
struct Counter {
    /// Which tenth since the origin it is for.
    number: u64,
    counts: Counts,
    /// The tools that may be the reason of failures, and of how many.
    tools: Vec<(Mark, u32)>,
}

/// Of how many tools a tenth keeps account. Where more than these fail, it is not the one tool.
const TOOLS: usize = 8;

/// How many calls there were, and what became of them. A call may be both failed and slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u32,
    pub(crate) failed: u32,
    pub(crate) slow: u32,
}

impl Window {
    /// Makes an empty one that lasts so long.
    pub(crate) fn new(lasts: Duration, now: Instant) -> Self {
        Self {
            origin: now,
            // never zero: there is no division by it
            tenth: (lasts / 10).max(Duration::from_nanos(1)),
            ring: Default::default(),
        }
    }

    /// Counts a call that ends now, and the tool that may be all that is wrong, if there is one.
    pub(crate) fn count(&mut self, failed: bool, slow: bool, tool: Option<Mark>, now: Instant) {
        let number = self.number(now);
        // the remainder is below the length of the ring
        let place = usize::try_from(number % TENTHS).unwrap_or(0);
        let Some(counter) = self.ring.get_mut(place) else {
            return;
        };
        if counter.number > number {
            // its time was read long before it got the lock: it is no part of this window any more
            return;
        }
        if counter.number < number {
            counter.number = number;
            counter.counts = Counts::default();
            counter.tools.clear();
        }
        counter.counts.add(Counts {
            calls: 1,
            failed: failed.into(),
            slow: slow.into(),
        });
        if let Some(tool) = tool {
            counter.blame(tool);
        }
    }

    /// Adds up what there is now.
    pub(crate) fn counts(&self, now: Instant) -> Counts {
        let current = self.number(now);
        let mut sum = Counts::default();
        for counter in &self.ring {
            if counter.number + TENTHS > current {
                sum.add(counter.counts);
            }
        }
        sum
    }

    /// How many failures there are now that one and the same tool may be the reason of: the tool that
    /// has most of them.
    pub(crate) fn most_of_one_tool(&self, now: Instant) -> u32 {
        let current = self.number(now);
        let live = || {
            let counters = self.ring.iter();
            let counters = counters.filter(move |counter| counter.number + TENTHS > current);
            counters.flat_map(|counter| &counter.tools)
        };
        // a few at most, and only looked at where a call failed
        let of = |tool: Mark| {
            let its = live().filter(|(other, _)| *other == tool);
            its.fold(0, |sum: u32, (_, count)| sum.saturating_add(*count))
        };
        live().map(|(tool, _)| of(*tool)).max().unwrap_or(0)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.ring = Default::default();
    }

    fn number(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.origin).as_nanos();
        u64::try_from(since / self.tenth.as_nanos()).unwrap_or(u64::MAX - TENTHS)
    }
}

impl Counter {
    fn blame(&mut self, tool: Mark) {
        let full = self.tools.len() >= TOOLS;
        match self.tools.iter_mut().find(|(other, _)| *other == tool) {
            Some((_, count)) => *count = count.saturating_add(1),
            None if full => {}
            None => self.tools.push((tool, 1)),
        }
    }
}

impl Counts {
    const fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.slow = self.slow.saturating_add(other.slow);
    }

    /// Leaves out so many failed calls.
    pub(crate) const fn without(self, failed: u32) -> Self {
        Self {
            calls: self.calls.saturating_sub(failed),
            failed: self.failed.saturating_sub(failed),
            slow: self.slow,
        }
    }

    /// Says whether this many of the calls are at least this share of them, in percent.
    pub(crate) fn reaches(&self, part: u32, percent: u32) -> bool {
        u64::from(part) * 100 >= u64::from(percent) * u64::from(self.calls)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_call_is_counted_until_its_tenth_is_over() {
        let start = Instant::now();
        let mut window = Window::new(10 * SECOND, start);
        window.count(true, false, None, start + SECOND / 2);
        let counted = |at| window.counts(start + at).calls;
        assert_eq!(counted(SECOND), 1);
        assert_eq!(counted(10 * SECOND - Duration::from_nanos(1)), 1);
        assert_eq!(counted(10 * SECOND), 0);
    }

    #[test]
    fn shares_are_exact() {
        let counts = |calls| Counts {
            calls,
            ..Counts::default()
        };
        assert!(counts(3).reaches(1, 33));
        assert!(!counts(3).reaches(1, 34));
        assert!(counts(u32::MAX).reaches(u32::MAX, 100));
        assert!(!counts(u32::MAX).reaches(u32::MAX - 1, 100));
    }

    proptest! {
        // the model keeps every call and looks at all of them
        #[test]
        fn it_counts_like_a_list_of_all_calls(
            lasts in 10_u64..100_000,
            steps in prop::collection::vec(
                (0_u64..30_000, any::<bool>(), prop::option::of(0_u64..4), any::<bool>()),
                0..200,
            ),
            late in 0_u64..20_000,
        ) {
            let start = Instant::now();
            let lasts = Duration::from_millis(lasts);
            let tenth = (lasts / 10).as_nanos();
            let mut window = Window::new(lasts, start);
            let mut all: Vec<(u128, bool, bool, Option<u64>)> = Vec::new();
            let mut now = start;
            for (wait, failed, tool, slow) in steps {
                let tool = tool.filter(|_| failed);
                // long pauses, and many calls between them
                if wait % 3 == 0 {
                    now += Duration::from_millis(wait);
                }
                // a clock that was read before another's turn may lag behind
                let read = now - Duration::from_millis(late.min(wait)).min(now - start);
                window.count(failed, slow, tool.map(Mark), read);
                all.push(((read - start).as_nanos() / tenth, failed, slow, tool));
                let current = (now - start).as_nanos() / tenth;
                let inside = || all.iter().filter(|(number, ..)| number + 10 > current);
                let expected = Counts {
                    calls: u32::try_from(inside().count()).unwrap(),
                    failed: u32::try_from(inside().filter(|one| one.1).count()).unwrap(),
                    slow: u32::try_from(inside().filter(|one| one.2).count()).unwrap(),
                };
                prop_assert_eq!(window.counts(now), expected);
                let of = |tool| inside().filter(|one| one.3 == Some(tool)).count();
                let most = (0..4).map(of).max().unwrap_or(0);
                prop_assert_eq!(window.most_of_one_tool(now) as usize, most);
            }
        }
    }
}
