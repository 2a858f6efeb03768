//! One deadline for all attempts of a call: how much of it each one gets.
//!
//! A call that has a deadline and may be retried would gain nothing from that if its first attempt
//! could wait until the deadline. So each attempt but the last gets a share of what is left:
//!
//! - an even share of what is left, among the attempts that are still allowed,
//! - but never less than an attempt *needs*: twice what the tool says a call usually takes, and no
//!   less than the first step of its backoff,
//! - and never so much that the longest next pause and what one more attempt needs do not fit.
//!
//! Of a tool that does not say how long it takes nobody knows what an attempt needs: it gets half of
//! what is left, so that the next one may take as long. Where not even two attempts fit, the first
//! gets everything: half an attempt is worth less than none. The last attempt that is allowed gets
//! all that is left.
//!
//! A share ends an attempt only for a retry that follows ([`Paid`](crate::share::Paid)).
//!
//! What is left at the end of a share that was not used up goes to the next attempt.

use std::time::Duration;

/// What is known when an attempt is about to begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    /// From the attempt's beginning to the call's deadline.
    pub(crate) left: Duration,
    /// How many attempts are allowed from here on, this one included.
    pub(crate) attempts: u32,
    /// The longest pause there can be after it.
    pub(crate) pause: Duration,
    /// What a call usually takes, if the tool says so.
    pub(crate) usual: Option<Duration>,
    /// The least that makes sense, whatever is known: the first step of the backoff.
    pub(crate) least: Duration,
}

impl Outlook {
    /// Returns how long the attempt may take if another one follows; `None` if it gets all that is left.
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

    /// Returns what an attempt needs, of the time that two of them have.
    fn need(&self, both: Duration) -> Duration {
        let known = self.usual.map(|usual| usual.saturating_mul(SLACK));
        known.unwrap_or(both / 2).max(self.least)
    }
}

/// How often over what it usually takes an attempt may take: half of all calls are slower than usual.
const SLACK: u32 = 2;

/// Says whether an attempt after this pause would end before the deadline, `left` away, as far as is
/// known how long it takes.
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
    fn what_is_unknown_gets_half_and_what_is_known_an_even_share() {
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
    fn the_last_attempt_and_one_that_cannot_be_retried_get_all() {
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
    fn a_retry_that_would_end_with_the_deadline_begins_and_one_beyond_does_not() {
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
        fn a_share_is_enough_and_leaves_enough_for_another(
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
                    prop_assert!(ends_in_time(ms(left) - share, ms(pause), usual.map(ms)) || need.is_zero());
                }
                // else two would have fitted
                None => prop_assert!(ms(left) < need * 2 + ms(pause) + ms(1)),
            }
        }

        /// Attempts that all use up their shares, and pauses as long as they can be.
        #[test]
        fn all_attempts_together_end_at_the_deadline_at_the_latest(
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
