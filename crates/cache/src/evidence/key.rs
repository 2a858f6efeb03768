//! What is known of one key.

use smallvec::SmallVec;

use super::bucket::{BUCKETS, Bucket, Row};
use super::estimator::{Test, aged};

/// A session that pauses longer than this, in milliseconds, begins a new visit.
const PAUSE: u64 = 300_000;
/// The visits that are remembered for one key. Further sessions add no equal observations until one
/// of these visits is over, as theirs could be counted twice.
const VISITS: usize = 8;

/// What is known of one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Key {
    /// Its own evidence.
    pub(crate) row: Row,
    /// How much of the tool's equal observations is this key's.
    pub(crate) contributed: [f64; BUCKETS],
    /// Hits in each bucket since the key's own evidence allowed it.
    pub(crate) hits: [u32; BUCKETS],
    /// True if only its own evidence counts for it: it differed once, or it may have.
    pub(crate) alone: bool,
    /// When it was last used: a larger number is later.
    pub(crate) used: u64,
    visits: SmallVec<[Visit; 1]>,
}

/// One session's use of a key without a long pause.
#[derive(Debug, Clone, Copy)]
struct Visit {
    session: u64,
    /// In milliseconds of the tool's clock.
    last: u64,
    /// The buckets with an equal observation that counts for the key, with one that counts for its
    /// tool, and with a different one: one bit each.
    equal: u8,
    equal_of_tool: u8,
    different: u8,
}

/// Whether an equal observation counts: for its key, and for its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Credit {
    pub(crate) to_key: bool,
    pub(crate) to_tool: bool,
}

/// What a visit had in the bucket of a different observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Before {
    /// The equal observations that turned out different, and are to be taken back.
    pub(crate) equal: Credit,
    /// Whether it had a different one already.
    pub(crate) different: bool,
}

impl Key {
    /// Makes a key of which this is known, without visits.
    pub(crate) fn new(row: Row, contributed: [f64; BUCKETS], alone: bool) -> Self {
        Self {
            row,
            contributed,
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
        let bit = bucket.bit();
        let credit = Credit {
            to_key: due.to_key && (visit.equal | visit.different) & bit == 0,
            to_tool: due.to_tool && (visit.equal_of_tool | visit.different) & bit == 0,
        };
        if credit.to_key {
            visit.equal |= bit;
        }
        if credit.to_tool {
            visit.equal_of_tool |= bit;
        }
        credit
    }

    /// Notes a different observation, and says what the visit had in that bucket.
    pub(crate) fn note_different(&mut self, session: u64, bucket: Bucket, now: u64) -> Before {
        let Some(visit) = self.visit(session, now) else {
            return Before::default();
        };
        let bit = bucket.bit();
        let different = visit.different & bit != 0;
        visit.different |= bit;
        Before {
            equal: Credit {
                to_key: !different && visit.equal & bit != 0,
                to_tool: !different && visit.equal_of_tool & bit != 0,
            },
            different,
        }
    }

    /// Returns the session's visit, a new one if its last is over; `None` if there is no place for it.
    fn visit(&mut self, session: u64, now: u64) -> Option<&mut Visit> {
        let known = self
            .visits
            .iter()
            .position(|visit| visit.session == session);
        let at = match known {
            Some(at) if self.visits[at].is_over(now) => {
                self.visits[at] = Visit::new(session, now);
                at
            }
            Some(at) => at,
            None => {
                self.visits.retain(|visit| !visit.is_over(now));
                if self.visits.len() >= VISITS {
                    return None;
                }
                self.visits.push(Visit::new(session, now));
                self.visits.len() - 1
            }
        };
        let visit = self.visits.get_mut(at)?;
        visit.last = visit.last.max(now);
        Some(visit)
    }

    /// Multiplies all weights. Returns false if nothing is left that is worth keeping.
    pub(crate) fn age(&mut self, test: &Test, factor: f64, now: u64) -> bool {
        self.row.age(test, factor);
        for weight in &mut self.contributed {
            *weight = aged(*weight, factor);
        }
        self.visits.retain(|visit| !visit.is_over(now));
        self.alone || !self.visits.is_empty() || !self.is_blank()
    }

    /// Says whether nothing is known of it.
    pub(crate) fn is_blank(&self) -> bool {
        let tallies = self.row.tallies.iter();
        let mut sums = tallies.map(|tally| tally.equal + tally.different);
        !self.alone && sums.all(|sum| sum <= 0.0)
    }
}

impl Visit {
    fn new(session: u64, now: u64) -> Self {
        Self {
            session,
            last: now,
            equal: 0,
            equal_of_tool: 0,
            different: 0,
        }
    }

    fn is_over(&self, now: u64) -> bool {
        now.saturating_sub(self.last) > PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(number: usize) -> Bucket {
        Bucket::numbered(number).unwrap()
    }

    const BOTH: Credit = Credit {
        to_key: true,
        to_tool: true,
    };

    /// Notes an equal observation that is due for both, and says whether it counts for both.
    fn note(key: &mut Key, session: u64, number: usize, now: u64) -> bool {
        let credit = key.note_equal(session, bucket(number), now, BOTH);
        assert_eq!(credit.to_key, credit.to_tool);
        credit.to_key
    }

    #[test]
    fn a_visit_counts_once_per_bucket_and_ends_with_a_pause() {
        let mut key = Key::default();
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
        let mut key = Key::default();
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
    fn a_later_difference_takes_back_what_counted() {
        let mut key = Key::default();
        let before = |equal, different| Before { equal, different };
        let (none, session) = (Credit::default(), 1);
        assert_eq!(
            key.note_different(session, bucket(0), 0),
            before(none, false)
        );
        assert_eq!(
            key.note_different(session, bucket(0), 0),
            before(none, true)
        );
        assert!(!note(&mut key, session, 0, 0));
        assert!(note(&mut key, session, 1, 0));
        assert_eq!(
            key.note_different(session, bucket(1), 0),
            before(BOTH, false)
        );
        assert_eq!(
            key.note_different(session, bucket(1), 0),
            before(none, true)
        );
        let later = key.note_different(session, bucket(1), 300_001);
        assert_eq!(later, before(none, false));
    }

    #[test]
    fn a_ninth_session_adds_no_equal_observation_until_a_visit_is_over() {
        let mut key = Key::default();
        for session in 0..8 {
            assert!(note(&mut key, session, 0, session));
        }
        assert!(!note(&mut key, 8, 0, 8));
        assert_eq!(key.note_different(8, bucket(0), 8), Before::default());
        assert!(!note(&mut key, 0, 0, 8));
        assert!(note(&mut key, 8, 0, 300_002));
        assert!(!note(&mut key, 8, 0, 300_002));
    }
}
