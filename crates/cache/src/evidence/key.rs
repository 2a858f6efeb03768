//! The evidence about one key.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::bucket::{BUCKETS, Bucket, BucketTallies};
use super::estimator::{Test, aged};

/// A session that pauses longer than this, in milliseconds, begins a new visit.
const MAX_PAUSE: u64 = 300_000;
/// The visits that are remembered for one key. Further sessions add no equal observations until one
/// of these visits is over, as theirs could be counted twice.
const MAX_VISITS: usize = 8;

/// The evidence about one key.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct KeyEvidence {
    /// Its own evidence.
    pub(crate) tallies: BucketTallies,
    /// Its part of the tool's equal observations.
    pub(crate) contributed: [f64; BUCKETS],
    /// Hits in each bucket since the key's own evidence allowed it.
    #[serde(skip)]
    pub(crate) hits: [u32; BUCKETS],
    /// Whether only its own evidence counts for it: it differed once, or it may have.
    pub(crate) alone: bool,
    /// When it was last used: a larger number is later.
    #[serde(skip)]
    pub(crate) used: u64,
    #[serde(skip)]
    visits: SmallVec<[Visit; 1]>,
}

/// One session's use of a key without a long pause.
#[derive(Debug, Clone, Copy)]
struct Visit {
    session: u64,
    /// In milliseconds of the tool's clock.
    last: u64,
    seen: [Seen; BUCKETS],
}

/// A visit's observations in one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// The equal observations that count.
    pub(crate) equal: Credit,
    pub(crate) different: bool,
}

/// Whether an equal observation counts: for its key, and for its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Credit {
    pub(crate) to_key: bool,
    pub(crate) to_tool: bool,
}

impl KeyEvidence {
    pub(crate) fn new(alone: bool) -> Self {
        Self {
            alone,
            ..Self::default()
        }
    }

    /// Notes an equal observation. It counts where it is `due`, once for each visit and bucket.
    pub(crate) fn note_equal(
        &mut self,
        session: u64,
        bucket: Bucket,
        now: u64,
        due: Credit,
    ) -> Credit {
        let Some(visit) = self.visit(session, now) else {
            return Credit::default();
        };
        let seen = &mut visit.seen[bucket.0];
        let credit = Credit {
            to_key: due.to_key && !seen.equal.to_key && !seen.different,
            to_tool: due.to_tool && !seen.equal.to_tool && !seen.different,
        };
        seen.equal.to_key |= credit.to_key;
        seen.equal.to_tool |= credit.to_tool;
        credit
    }

    /// Notes a different observation. Returns what the visit had seen in that bucket; its equal
    /// observations are to be taken back.
    pub(crate) fn note_different(&mut self, session: u64, bucket: Bucket, now: u64) -> Seen {
        let Some(visit) = self.visit(session, now) else {
            return Seen::default();
        };
        let after = Seen {
            equal: Credit::default(),
            different: true,
        };
        std::mem::replace(&mut visit.seen[bucket.0], after)
    }

    /// Returns the session's visit, a new one if its last is over; `None` if there are too many.
    fn visit(&mut self, session: u64, now: u64) -> Option<&mut Visit> {
        self.visits.retain(|visit| !visit.is_over(now));
        let mut all = self.visits.iter();
        let at = match all.position(|visit| visit.session == session) {
            Some(at) => at,
            None if self.visits.len() >= MAX_VISITS => return None,
            None => {
                self.visits.push(Visit {
                    session,
                    last: now,
                    seen: Default::default(),
                });
                self.visits.len() - 1
            }
        };
        let visit = self.visits.get_mut(at)?;
        visit.last = visit.last.max(now);
        Some(visit)
    }

    /// Multiplies all weights. Returns `false` if nothing worth keeping is left.
    pub(crate) fn age(&mut self, test: &Test, factor: f64, now: u64) -> bool {
        self.tallies.age(test, factor);
        for weight in &mut self.contributed {
            *weight = aged(*weight, factor);
        }
        self.visits.retain(|visit| !visit.is_over(now));
        !self.visits.is_empty() || !self.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.alone && self.tallies.is_empty()
    }
}

impl Visit {
    fn is_over(&self, now: u64) -> bool {
        now.saturating_sub(self.last) > MAX_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(number: usize) -> Bucket {
        Bucket::all().nth(number).unwrap()
    }

    const BOTH: Credit = Credit {
        to_key: true,
        to_tool: true,
    };

    /// Notes an equal observation that is due for both. Returns `true` if it counts for both.
    fn note(key: &mut KeyEvidence, session: u64, number: usize, now: u64) -> bool {
        let credit = key.note_equal(session, bucket(number), now, BOTH);
        assert_eq!(credit.to_key, credit.to_tool);
        credit.to_key
    }

    #[test]
    fn a_visit_counts_once_per_bucket_and_ends_with_a_pause() {
        let mut key = KeyEvidence::default();
        assert!(note(&mut key, 1, 0, 0));
        assert!(!note(&mut key, 1, 0, 1_000));
        assert!(note(&mut key, 1, 1, 2_000));
        assert!(note(&mut key, 2, 0, 2_000));
        // the pause is counted from the last use, in whichever bucket
        assert!(!note(&mut key, 1, 0, 302_000));
        assert!(!note(&mut key, 1, 0, 602_000));
        assert!(note(&mut key, 1, 0, 902_001));
    }

    #[test]
    fn an_observation_that_is_not_due_may_count_later_in_its_visit() {
        let mut key = KeyEvidence::default();
        let only_key = Credit {
            to_tool: false,
            ..BOTH
        };
        assert_eq!(key.note_equal(1, bucket(0), 0, only_key), only_key);
        let only_tool = Credit {
            to_key: false,
            ..BOTH
        };
        assert_eq!(key.note_equal(1, bucket(0), 1_000, BOTH), only_tool);
        assert_eq!(key.note_equal(1, bucket(0), 2_000, BOTH), Credit::default());
    }

    #[test]
    fn a_ninth_session_adds_no_equal_observation_until_a_visit_is_over() {
        let mut key = KeyEvidence::default();
        for session in 0..8 {
            assert!(note(&mut key, session, 0, session));
        }
        assert!(!note(&mut key, 8, 0, 8));
        assert_eq!(key.note_different(8, bucket(0), 8), Seen::default());
        assert!(!note(&mut key, 0, 0, 8));
        assert!(note(&mut key, 8, 0, 300_002));
        assert!(!note(&mut key, 8, 0, 300_002));
    }
}
