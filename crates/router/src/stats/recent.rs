//! What calls to a server came to in the last minutes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::histogram::{Counted, Histogram};

/// What calls came to in this minute and in the one before it.
///
/// Two parts take turns: calls of even minutes count in one, of odd minutes in the other, and who
/// first comes in a new minute clears the part that is two minutes old. Nobody waits for that: a call
/// that ends while it is cleared is missing here. The totals miss none.
#[derive(Debug)]
pub(super) struct Recent {
    parts: [Part; 2],
}

#[derive(Debug)]
struct Part {
    /// The minute it counts for, from 1; 0 before the first; [`CLEARING`].
    minute: AtomicU32,
    faults: AtomicU32,
    answers: Histogram,
}

const CLEARING: u32 = u32::MAX;

/// What calls came to lately.
#[derive(Debug, Clone)]
pub(super) struct Lately {
    pub(super) faults: u64,
    pub(super) answers: Counted,
}

impl Recent {
    /// How long a part counts before the other takes its turn.
    pub(super) const PART: Duration = Duration::from_secs(60);

    pub(super) const fn new() -> Self {
        Self {
            parts: [Part::new(), Part::new()],
        }
    }

    /// Counts an answer. `age` is how long the server has been counted.
    pub(super) fn answer(&self, age: Duration, took: Duration) {
        if let Some(part) = self.part(minute(age)) {
            part.answers.record(took);
        }
    }

    /// Counts a fault.
    pub(super) fn fault(&self, age: Duration) {
        if let Some(part) = self.part(minute(age)) {
            part.faults.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns what was counted in this minute and the last.
    pub(super) fn lately(&self, age: Duration) -> Lately {
        let now = minute(age);
        let mut sum = Lately {
            faults: 0,
            answers: Counted::new(),
        };
        for part in &self.parts {
            let minute = part.minute.load(Ordering::Acquire);
            if minute == now || minute.checked_add(1) == Some(now) {
                sum.faults += u64::from(part.faults.load(Ordering::Relaxed));
                part.answers.add_to(&mut sum.answers);
            }
        }
        sum
    }

    /// Returns the part of this minute, cleared if it counted for an earlier one; `None` while
    /// somebody clears it, or if a later minute has taken it.
    fn part(&self, now: u32) -> Option<&Part> {
        let [even, odd] = &self.parts;
        let part = if now.is_multiple_of(2) { even } else { odd };
        let seen = part.minute.load(Ordering::Acquire);
        (seen == now || (seen < now && part.begin(seen, now))).then_some(part)
    }
}

impl Part {
    const fn new() -> Self {
        Self {
            minute: AtomicU32::new(0),
            faults: AtomicU32::new(0),
            answers: Histogram::new(),
        }
    }

    /// Clears it for a minute; says whether nobody else does.
    fn begin(&self, seen: u32, minute: u32) -> bool {
        let claim =
            self.minute
                .compare_exchange(seen, CLEARING, Ordering::Acquire, Ordering::Relaxed);
        if claim.is_err() {
            return false;
        }
        self.faults.store(0, Ordering::Relaxed);
        self.answers.clear();
        self.minute.store(minute, Ordering::Release);
        true
    }
}

/// Returns which minute it is, from 1. Beyond 8,000 years it stays the same.
fn minute(age: Duration) -> u32 {
    let minutes = age.as_secs() / Recent::PART.as_secs();
    u32::try_from(minutes)
        .unwrap_or(CLEARING - 2)
        .min(CLEARING - 2)
        + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn what_is_two_minutes_old_does_not_count() {
        let recent = Recent::new();
        recent.answer(secs(0), MS);
        recent.fault(secs(59));
        let told = |age| {
            let lately = recent.lately(secs(age));
            (lately.answers.total(), lately.faults)
        };
        assert_eq!(told(59), (1, 1));
        assert_eq!(told(119), (1, 1));
        assert_eq!(told(120), (0, 0));
        recent.answer(secs(121), MS);
        assert_eq!(told(121), (1, 0));
        // long after
        assert_eq!(told(100_000), (0, 0));
    }

    #[test]
    fn who_comes_too_late_changes_nothing() {
        let recent = Recent::new();
        recent.answer(secs(120), MS);
        recent.answer(secs(0), MS);
        assert_eq!(recent.lately(secs(120)).answers.total(), 1);
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        let recent = Recent::new();
        recent.fault(Duration::MAX);
        assert_eq!(recent.lately(Duration::MAX).faults, 1);
        assert_eq!(recent.lately(Duration::ZERO).faults, 0);
    }

    proptest! {
        #[test]
        fn it_counts_as_a_list_of_all_would(
            steps in prop::collection::vec((0u64..90, any::<bool>()), 0..200),
        ) {
            let recent = Recent::new();
            let (mut now, mut all) = (0, Vec::new());
            for (pause, is_answer) in steps {
                now += pause;
                all.push((now, is_answer));
                match is_answer {
                    true => recent.answer(secs(now), MS * 20),
                    false => recent.fault(secs(now)),
                }
                let counted = |wanted| {
                    let of_now = |at: &u64| now / 60 - at / 60 < 2;
                    let hits = all.iter().filter(|(at, is)| of_now(at) && *is == wanted);
                    hits.count() as u64
                };
                let lately = recent.lately(secs(now));
                prop_assert_eq!(lately.answers.total(), counted(true));
                prop_assert_eq!(lately.faults, counted(false));
            }
        }
    }
}
