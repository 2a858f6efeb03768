//! The figures of one policy, call by call.

use std::time::Duration;

use serde::Serialize;

use crate::report::share;

/// The recorded facts of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) key: u128,
    /// The length of the result.
    pub(crate) bytes: u64,
    /// The last 128 bits of the SHA-1 of the result.
    pub(crate) digest: Option<u128>,
    pub(crate) error: bool,
    /// The call was answered, perhaps with a failure.
    pub(crate) answered: bool,
    pub(crate) write: bool,
    /// The call repeats the last write to its world, without further effect.
    pub(crate) repeats: bool,
    /// The time that the server took, if known and the server ran the call.
    pub(crate) cost: Option<Duration>,
}

/// The call whose result a policy kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) digest: Option<u128>,
    pub(crate) cost: Option<Duration>,
}

/// The decision of a policy on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// The call ran.
    Ran,
    /// A stored result answered it.
    Hit(Kept),
    /// The result of a call in flight answered it.
    Joined(Kept),
}

/// The figures of one policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// The policy.
    pub policy: &'static str,
    /// The number of calls.
    pub calls: u64,
    /// The number of reads among them.
    pub reads: u64,
    /// Calls answered with a stored result.
    pub hits: u64,
    /// Calls answered with the result of an identical call in flight.
    pub joined: u64,
    /// Hits and joined, as a share of all calls.
    pub hit_rate: f64,
    /// Hits and joined among the reads, as a share of the reads.
    pub read_hit_rate: f64,
    /// Answers that differ from the recorded result; `None` if no answer could be compared.
    pub stale: Option<u64>,
    /// Answers that could not be compared, because one of the two results is unknown.
    pub not_compared: u64,
    /// Writes that were answered without running, though they would have had an effect.
    pub writes_swallowed: u64,
    /// Writes that were answered without running and only repeated the last one, by a tool that is
    /// idempotent.
    pub repeats_answered: u64,
    /// The time that servers would have taken for the answered calls, in milliseconds.
    pub saved_ms: f64,
    /// The bytes kept at the end.
    pub bytes: u64,
}

/// Counts the figures of one policy.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    figures: Figures,
    read_hits: u64,
    compared: u64,
    stale: u64,
    saved: Duration,
    assumed: Duration,
}

impl Tally {
    /// Starts at zero. A call of unknown duration counts as `assumed`.
    pub(crate) fn new(policy: &'static str, assumed: Duration) -> Self {
        let figures = Figures {
            policy,
            ..Figures::default()
        };
        Self {
            figures,
            assumed,
            ..Self::default()
        }
    }

    pub(crate) fn count(&mut self, call: &Facts, did: Did) {
        let figures = &mut self.figures;
        figures.calls += 1;
        figures.reads += u64::from(!call.write);
        let kept = match did {
            Did::Ran => return,
            Did::Hit(kept) => {
                figures.hits += 1;
                kept
            }
            Did::Joined(kept) => {
                figures.joined += 1;
                kept
            }
        };
        if !call.write {
            self.read_hits += 1;
        } else if call.repeats {
            figures.repeats_answered += 1;
        } else {
            figures.writes_swallowed += 1;
        }
        match differs(call, kept) {
            Some(stale) => {
                self.compared += 1;
                self.stale += u64::from(stale);
            }
            None => figures.not_compared += 1,
        }
        let cost = call.cost.or(kept.cost).unwrap_or(self.assumed);
        self.saved = self.saved.saturating_add(cost);
    }

    /// Returns the figures.
    pub(crate) fn end(mut self, bytes: u64) -> Figures {
        let figures = &mut self.figures;
        let answered = figures.hits + figures.joined;
        figures.hit_rate = share(answered, figures.calls);
        figures.read_hit_rate = share(self.read_hits, figures.reads);
        figures.stale = (self.compared > 0 || figures.not_compared == 0).then_some(self.stale);
        figures.saved_ms = self.saved.as_secs_f64() * 1e3;
        figures.bytes = bytes;
        self.figures
    }
}

/// Returns `true` if an answer differs from the recorded one; `None` if that is unknown.
fn differs(call: &Facts, kept: Kept) -> Option<bool> {
    match (call.digest, kept.digest) {
        (Some(recorded), Some(given)) => Some(recorded != given),
        // only successes are stored, and a failure is recorded
        _ if call.error && call.answered => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSUMED: Duration = Duration::from_millis(100);

    fn facts(write: bool, digest: Option<u8>) -> Facts {
        Facts {
            key: 0,
            bytes: 0,
            digest: digest.map(u128::from),
            error: false,
            answered: true,
            write,
            repeats: false,
            cost: None,
        }
    }

    fn kept(digest: Option<u8>) -> Kept {
        Kept {
            digest: digest.map(u128::from),
            cost: None,
        }
    }

    fn figures(counted: &[(Facts, Did)]) -> Figures {
        let mut tally = Tally::new("p", ASSUMED);
        for (facts, did) in counted {
            tally.count(facts, *did);
        }
        tally.end(0)
    }

    #[test]
    fn a_different_answer_is_stale_and_an_unrecorded_one_unknown() {
        let read = facts(false, Some(1));
        let failed = Facts {
            error: true,
            ..facts(false, None)
        };
        let cases = [
            (read, Did::Hit(kept(Some(1))), Some(0), 0),
            (read, Did::Joined(kept(Some(2))), Some(1), 0),
            (read, Did::Hit(kept(None)), None, 1),
            (facts(false, None), Did::Hit(kept(Some(1))), None, 1),
            (failed, Did::Hit(kept(None)), Some(1), 0),
            (read, Did::Ran, Some(0), 0),
        ];
        for (facts, did, stale, unknown) in cases {
            let figures = figures(&[(facts, did)]);
            assert_eq!(
                (figures.stale, figures.not_compared),
                (stale, unknown),
                "{did:?}"
            );
        }
        let some = figures(&[
            (read, Did::Hit(kept(Some(2)))),
            (facts(false, None), Did::Hit(kept(None))),
        ]);
        assert_eq!((some.stale, some.not_compared), (Some(1), 1));
    }

    #[test]
    fn an_answered_write_is_swallowed_unless_it_only_repeats() {
        let write = facts(true, None);
        let repeat = Facts {
            repeats: true,
            ..write
        };
        let hit = Did::Hit(kept(None));
        let figures = figures(&[(write, hit), (repeat, hit), (write, Did::Ran)]);
        assert_eq!(figures.writes_swallowed, 1);
        assert_eq!(figures.repeats_answered, 1);
        assert_eq!((figures.reads, figures.calls), (0, 3));
    }

    #[test]
    fn saved_time_is_that_of_the_call_or_the_stored_one_or_assumed() {
        let ms = |millis| Some(Duration::from_millis(millis));
        let known = Facts {
            cost: ms(7),
            ..facts(false, None)
        };
        let filled = Kept {
            cost: ms(30),
            ..kept(None)
        };
        let unknown = facts(false, None);
        let saved = |facts, kept| figures(&[(facts, Did::Hit(kept))]).saved_ms;
        assert!((saved(known, filled) - 7.0).abs() < 1e-9);
        assert!((saved(unknown, filled) - 30.0).abs() < 1e-9);
        assert!((saved(unknown, kept(None)) - 100.0).abs() < 1e-9);
    }
}
