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
    /// The buckets with an equal observation, and those with a different one: one bit each.
    equal: u8,
    different: u8,
}

/// What a different observation is to the visit's unit in its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// There was no observation before.
    New,
    /// The unit was equal so far and has been counted as such.
    Turned,
    /// The unit is different already.
    Again,
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

    /// Notes an equal observation. Returns true if it counts: it is the visit's first in the bucket.
    pub(crate) fn note_equal(&mut self, session: u64, bucket: Bucket, now: u64) -> bool {
        self.visit(session, now).is_some_and(|visit| {
            let counts = (visit.equal | visit.different) & bucket.bit() == 0;
            visit.equal |= bucket.bit();
            counts
        })
    }

    /// Notes a different observation, and says what the visit had in that bucket.
    pub(crate) fn note_different(&mut self, session: u64, bucket: Bucket, now: u64) -> Difference {
        let Some(visit) = self.visit(session, now) else {
            return Difference::New;
        };
        let had = match bucket.bit() {
            bit if visit.different & bit != 0 => Difference::Again,
            bit if visit.equal & bit != 0 => Difference::Turned,
            _ => Difference::New,
        };
        visit.different |= bucket.bit();
        had
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

    #[test]
    fn a_visit_counts_once_per_bucket_and_ends_with_a_pause() {
        let mut key = Key::default();
        assert!(key.note_equal(1, bucket(0), 0));
        assert!(!key.note_equal(1, bucket(0), 1_000));
        assert!(key.note_equal(1, bucket(1), 2_000));
        assert!(key.note_equal(2, bucket(0), 2_000));
        // the pause is counted from the last use, in whichever bucket
        assert!(!key.note_equal(1, bucket(0), 302_000));
        assert!(!key.note_equal(1, bucket(0), 602_000));
        assert!(key.note_equal(1, bucket(0), 902_001));
    }

    #[test]
    fn a_later_difference_turns_the_unit() {
        let mut key = Key::default();
        assert_eq!(key.note_different(1, bucket(0), 0), Difference::New);
        assert_eq!(key.note_different(1, bucket(0), 0), Difference::Again);
        assert!(!key.note_equal(1, bucket(0), 0));
        assert!(key.note_equal(1, bucket(1), 0));
        assert_eq!(key.note_different(1, bucket(1), 0), Difference::Turned);
        assert_eq!(key.note_different(1, bucket(1), 0), Difference::Again);
        assert_eq!(key.note_different(1, bucket(1), 300_001), Difference::New);
    }

    #[test]
    fn a_ninth_session_adds_no_equal_observation_until_a_visit_is_over() {
        let mut key = Key::default();
        for session in 0..8 {
            assert!(key.note_equal(session, bucket(0), session));
        }
        assert!(!key.note_equal(8, bucket(0), 8));
        assert_eq!(key.note_different(8, bucket(0), 8), Difference::New);
        assert!(!key.note_equal(0, bucket(0), 8));
        assert!(key.note_equal(8, bucket(0), 300_002));
        assert!(!key.note_equal(8, bucket(0), 300_002));
    }
}
