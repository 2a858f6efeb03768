//! The figures of one policy, call by call.

use std::time::Duration;

use callward_core::Delivery;
use serde::Serialize;

use crate::report::share;

/// The recorded facts of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) key: u128,
    /// The length of the result.
    pub(crate) bytes: u64,
    /// What a policy would keep of it.
    pub(crate) result: Kept,
    pub(crate) error: bool,
    /// The delivery, if the call had no answer.
    pub(crate) lost: Option<Delivery>,
    pub(crate) write: bool,
    /// The call repeats the last write to its world, without further effect.
    pub(crate) repeats: bool,
}

/// What is known of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The last 128 bits of its SHA-1.
    pub(crate) digest: Option<u128>,
    /// The time that the server took, if known and the server ran the call.
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
        let cost = call.result.cost.or(kept.cost).unwrap_or(self.assumed);
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
    match (call.result.digest, kept.digest) {
        (Some(recorded), Some(given)) => Some(recorded != given),
        // only successes are stored, and a failure is recorded
        _ if call.error && call.lost.is_none() => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call with this digest, of this cost.
    fn facts(write: bool, digest: Option<u128>, cost: Option<u64>) -> Facts {
        Facts {
            key: 0,
            bytes: 0,
            result: kept(digest, cost),
            error: false,
            lost: None,
            write,
            repeats: false,
        }
    }

    fn kept(digest: Option<u128>, cost: Option<u64>) -> Kept {
        let cost = cost.map(Duration::from_millis);
        Kept { digest, cost }
    }

    fn figures(counted: &[(Facts, Did)]) -> Figures {
        let mut tally = Tally::new("p", Duration::from_millis(100));
        for (facts, did) in counted {
            tally.count(facts, *did);
        }
        tally.end(0)
    }

    #[test]
    fn a_different_answer_is_stale_and_an_unrecorded_one_unknown() {
        let read = facts(false, Some(1), None);
        let unknown = facts(false, None, None);
        let failed = Facts {
            error: true,
            ..unknown
        };
        let hit = |digest| Did::Hit(kept(digest, None));
        for (counted, stale, not_compared) in [
            (vec![(read, hit(Some(1)))], Some(0), 0),
            (vec![(read, Did::Joined(kept(Some(2), None)))], Some(1), 0),
            (vec![(read, hit(None))], None, 1),
            (vec![(unknown, hit(Some(1)))], None, 1),
            (vec![(failed, hit(None))], Some(1), 0),
            (vec![(read, Did::Ran)], Some(0), 0),
            (vec![(read, hit(Some(2))), (unknown, hit(None))], Some(1), 1),
        ] {
            let found = figures(&counted);
            let found = (found.stale, found.not_compared);
            assert_eq!(found, (stale, not_compared), "{counted:?}");
        }
    }
}
