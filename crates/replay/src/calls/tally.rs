//! Judging one policy, call by call.

use std::time::Duration;

use serde::Serialize;

use crate::report::share;
use crate::trace::ResultDigest;

/// What the record says of one call: all that an answer is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) key: u128,
    /// How many bytes came back.
    pub(crate) bytes: u64,
    pub(crate) digest: Option<ResultDigest>,
    pub(crate) error: bool,
    /// The call had an answer, be it a failure.
    pub(crate) answered: bool,
    pub(crate) write: bool,
    /// The call repeats the last write to its world, and that has no further effect.
    pub(crate) repeats: bool,
    /// What the server took, if it worked for the call and that is known.
    pub(crate) cost: Option<Duration>,
}

/// Of whom a policy has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) digest: Option<ResultDigest>,
    pub(crate) cost: Option<Duration>,
}

/// What a policy did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// Let it run.
    Ran,
    /// Answered it with what it had.
    Hit(Kept),
    /// Answered it together with one that was running.
    Joined(Kept),
}

/// What one policy did, in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// The policy.
    pub policy: &'static str,
    /// How many calls were replayed.
    pub calls: u64,
    /// How many of them are reads.
    pub reads: u64,
    /// Answered with what was kept.
    pub hits: u64,
    /// Answered with the result of an identical call that was running.
    pub joined: u64,
    /// Hits and joined, as a share of all calls.
    pub hit_rate: f64,
    /// Hits and joined among the reads, as a share of the reads.
    pub read_hit_rate: f64,
    /// Answered with something else than the recorded result; `None` if no answer could be compared.
    pub stale: Option<u64>,
    /// Answered with what could not be compared: one of the two results was not recorded.
    pub not_compared: u64,
    /// Writes that were answered without being run, though running them would have had an effect.
    pub writes_swallowed: u64,
    /// Writes that were answered without being run, and only repeated the last one, which their tool
    /// says has no further effect.
    pub repeats_answered: u64,
    /// What the servers would have worked for the calls that were answered without them.
    pub saved_ms: f64,
    /// What is kept at the end.
    pub bytes: u64,
}

/// The figures of one policy, under way.
#[derive(Debug)]
pub(crate) struct Tally {
    figures: Figures,
    read_hits: u64,
    compared: u64,
    stale: u64,
    saved: Duration,
    assumed: Duration,
}

impl Tally {
    /// Starts with nothing. A call whose duration nobody knows is worth `assumed`.
    pub(crate) const fn new(policy: &'static str, assumed: Duration) -> Self {
        Self {
            figures: Figures {
                policy,
                calls: 0,
                reads: 0,
                hits: 0,
                joined: 0,
                hit_rate: 0.0,
                read_hit_rate: 0.0,
                stale: None,
                not_compared: 0,
                writes_swallowed: 0,
                repeats_answered: 0,
                saved_ms: 0.0,
                bytes: 0,
            },
            read_hits: 0,
            compared: 0,
            stale: 0,
            saved: Duration::ZERO,
            assumed,
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

    /// Returns the figures. `bytes` is what is kept at the end.
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

/// Says whether an answer is another than the recorded one; `None` if that is not known.
fn differs(call: &Facts, kept: Kept) -> Option<bool> {
    match (call.digest, kept.digest) {
        (Some(recorded), Some(given)) => Some(recorded != given),
        // only successes are kept, and the record has a failure in its place
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
            digest: digest.map(|byte| ResultDigest::new([byte; 20])),
            error: false,
            answered: true,
            write,
            repeats: false,
            cost: None,
        }
    }

    fn kept(digest: Option<u8>) -> Kept {
        Kept {
            digest: digest.map(|byte| ResultDigest::new([byte; 20])),
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
    fn an_answer_is_stale_if_it_differs_and_unknown_if_nobody_can_tell() {
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
    fn a_write_that_is_answered_is_swallowed_unless_it_only_repeats() {
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
    fn what_is_saved_is_what_the_call_took_or_the_one_before_or_what_is_assumed() {
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
