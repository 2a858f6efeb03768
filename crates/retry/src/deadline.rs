//! How much of the time to a call's deadline each attempt gets.
//!
//! Each attempt but the last gets an even share of what is left among those still allowed; never
//! less than it needs, twice the usual duration of a call; and never so much that the longest next
//! pause and one more attempt do not fit. A tool without an estimated duration gets half of what is
//! left. Where two attempts do not fit, the first gets everything.

use std::time::Duration;

/// What is known when an attempt begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    /// The time to the call's deadline.
    pub(crate) left: Duration,
    /// How many attempts are allowed, this one included.
    pub(crate) attempts: u32,
    /// The longest pause after it.
    pub(crate) pause: Duration,
    /// The usual duration of a call, if known.
    pub(crate) usual: Option<Duration>,
    /// The least share: the first step of the backoff.
    pub(crate) least: Duration,
}

impl Outlook {
    /// Returns the share of the attempt; `None` if it gets all that is left.
    pub(crate) fn share(&self) -> Option<Duration> {
        if self.attempts < 2 {
            return None;
        }
        let both = self.left.checked_sub(self.pause)?;
        let need = self.need(both);
        let most = both.checked_sub(need).filter(|most| *most >= need)?;
        let share = (both / self.attempts).clamp(need, most);
        (!share.is_zero()).then_some(share)
    }

    /// Returns what an attempt needs, of the time for two.
    fn need(&self, both: Duration) -> Duration {
        let known = self.usual.map(|usual| usual.saturating_mul(SLACK));
        known.unwrap_or(both / 2).max(self.least)
    }
}

/// Half of all calls are slower than the usual one.
const SLACK: u32 = 2;

/// Returns `true` if an attempt after this pause ends in the time left, by its usual duration.
pub(crate) fn ends_in_time(left: Duration, pause: Duration, usual: Option<Duration>) -> bool {
    match usual.filter(|usual| !usual.is_zero()) {
        Some(usual) => pause.saturating_add(usual) <= left,
        None => pause < left,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const OUTLOOK: Outlook = Outlook {
        left: ms(10_000),
        attempts: 3,
        pause: ms(100),
        usual: None,
        least: ms(100),
    };

    #[test]
    fn an_unknown_duration_gets_half_and_a_known_one_an_even_share() {
        assert_eq!(OUTLOOK.share(), Some(ms(4_950)));
        let known = Outlook {
            usual: Some(ms(500)),
            ..OUTLOOK
        };
        assert_eq!(known.share(), Some(ms(3_300)));
        let slow = Outlook {
            usual: Some(ms(2_000)),
            ..OUTLOOK
        };
        assert_eq!(
            slow.share(),
            Some(ms(4_000)),
            "twice what it takes, not a third"
        );
    }

    #[test]
    fn the_last_attempt_and_one_without_a_retry_get_all() {
        let last = Outlook {
            attempts: 1,
            ..OUTLOOK
        };
        let slow = Outlook {
            usual: Some(ms(2_600)),
            ..OUTLOOK
        };
        let short = Outlook {
            left: ms(299),
            ..OUTLOOK
        };
        let pausing = Outlook {
            pause: ms(10_001),
            ..OUTLOOK
        };
        for outlook in [last, slow, short, pausing] {
            assert_eq!(outlook.share(), None, "{outlook:?}");
        }
    }

    #[test]
    fn a_retry_must_end_before_the_deadline() {
        assert!(ends_in_time(ms(300), ms(100), Some(ms(200))));
        assert!(!ends_in_time(ms(299), ms(100), Some(ms(200))));
        assert!(ends_in_time(ms(101), ms(100), None));
        for usual in [None, Some(ms(0))] {
            assert!(
                !ends_in_time(ms(100), ms(100), usual),
                "nothing is left of it"
            );
        }
    }

    proptest! {
        #[test]
        fn a_share_is_enough_and_leaves_enough_for_a_retry(
            left in 0_u64..100_000,
            attempts in 2_u32..10,
            pause in 0_u64..20_000,
            usual in prop::option::of(0_u64..20_000),
            least in 0_u64..5_000,
        ) {
            let outlook = Outlook {
                left: ms(left),
                attempts,
                pause: ms(pause),
                usual: usual.map(ms),
                least: ms(least),
            };
            let need = ms(usual.map_or(0, |usual| usual * 2)).max(ms(least));
            match outlook.share() {
                Some(share) => {
                    prop_assert!(share >= need, "{share:?} is too short");
                    let rest = ms(left) - share - ms(pause);
                    prop_assert!(rest >= need, "{rest:?} is left for another");
                    let in_time = ends_in_time(ms(left) - share, ms(pause), usual.map(ms));
                    prop_assert!(in_time || need.is_zero());
                }
                // else two would have fitted
                None => prop_assert!(ms(left) < need * 2 + ms(pause) + ms(1)),
            }
        }

        /// Attempts that all use up their shares, and pauses as long as they can be.
        #[test]
        fn all_attempts_end_at_the_deadline_at_the_latest(
            left in 1_u64..100_000,
            attempts in 1_u32..10,
            pause in 0_u64..2_000,
            usual in prop::option::of(0_u64..20_000),
        ) {
            let mut outlook = Outlook {
                left: ms(left),
                attempts,
                pause: ms(pause),
                usual: usual.map(ms),
                least: ms(100),
            };
            let mut spent = Duration::ZERO;
            while let Some(share) = outlook.share() {
                spent += share + outlook.pause;
                outlook.left -= share + outlook.pause;
                outlook.attempts -= 1;
            }
            prop_assert_eq!(spent + outlook.left, ms(left));
            prop_assert!(outlook.attempts >= 1 && !outlook.left.is_zero());
        }
    }
}
