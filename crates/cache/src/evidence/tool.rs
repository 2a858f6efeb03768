//! The evidence about one tool in one partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::bucket::{BUCKETS, Bucket, EDGES, Row, is_verified};
use super::estimator::{Test, ageing};
use super::key::{Credit, Key};
use super::keys::Keys;
use super::status::{BucketStatus, EvidenceStatus};

/// Evidence is aged in steps of at least this, in milliseconds.
const STEP: u64 = 600_000;

/// What all evidences of one cache share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) test: Test,
    /// How many keys there are in all.
    pub(crate) keys: Arc<AtomicUsize>,
    /// Whether anything was observed since the last snapshot.
    pub(crate) changed: AtomicBool,
}

/// The evidence about one tool in one partition.
#[derive(Debug)]
pub(crate) struct ToolEvidence {
    common: Arc<Common>,
    /// What its clock counts from.
    born: Instant,
    /// The lifetime for keys that do not stand alone, in seconds.
    allowed: AtomicU32,
    /// Whether any key may stand alone.
    any_alone: AtomicBool,
    /// When the evidence was aged, in milliseconds of its clock.
    aged: AtomicU64,
    /// Hits in each bucket since the tool's evidence allowed it.
    hits: [AtomicU32; BUCKETS],
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Of keys that do not stand alone.
    row: Row,
    keys: Keys,
    counts: [Counts; BUCKETS],
    aged: Instant,
}

/// Observations of all keys, not weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) repeats: u64,
    pub(crate) different: u64,
}

/// What is kept of a tool's evidence.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) row: Row,
    pub(crate) counts: [Counts; BUCKETS],
    /// See [`Keys::forgotten`].
    pub(crate) forgotten: u64,
    /// The most recently used last.
    pub(crate) keys: Vec<(u128, Key)>,
}

impl ToolEvidence {
    pub(crate) fn new(common: Arc<Common>, now: Instant) -> Self {
        let kept = Kept {
            row: Row::default(),
            counts: Default::default(),
            forgotten: 0,
            keys: Vec::new(),
        };
        Self::restored(common, kept, 1.0, now)
    }

    /// Takes what was kept, and multiplies all weights by `factor`, for the time since. The equal
    /// observations of the tool are worked out anew, as the odds may be others now.
    pub(crate) fn restored(common: Arc<Common>, kept: Kept, factor: f64, now: Instant) -> Self {
        let (test, mut row) = (&common.test, kept.row);
        let mut keys = Keys::new(common.keys.clone());
        keys.restore(test, &mut row, kept.forgotten, kept.keys);
        keys.age(test, factor, 0);
        row.age(test, factor);
        let tool = Self {
            common,
            born: now,
            allowed: AtomicU32::new(0),
            any_alone: AtomicBool::new(false),
            aged: AtomicU64::new(0),
            hits: Default::default(),
            inner: Mutex::new(Inner {
                row,
                keys,
                counts: kept.counts,
                aged: now,
            }),
        };
        tool.publish(&tool.inner.lock());
        tool
    }

    /// Returns the lifetime for keys that do not [stand alone](Self::stands_alone). One atomic load.
    #[inline]
    pub(crate) fn allowed(&self) -> Duration {
        Duration::from_secs(self.allowed.load(Ordering::Relaxed).into())
    }

    /// Returns the lifetime for this key: the tool's or its own, whichever is longer, and its own only
    /// if it stands alone.
    pub(crate) fn allowed_for(&self, key: u128, now: Instant) -> Duration {
        self.refresh(now);
        let inner = self.inner.lock();
        let own = inner.keys.get(key).map(|known| known.row.lifetime());
        let own = own.unwrap_or_default();
        if inner.keys.stands_alone(key) {
            own
        } else {
            own.max(inner.row.lifetime())
        }
    }

    /// Says whether [`allowed`](Self::allowed) does not count for this key: it differed once, or it may
    /// have. One atomic load where no key did.
    #[inline]
    pub(crate) fn stands_alone(&self, key: u128) -> bool {
        self.any_alone.load(Ordering::Relaxed) && self.inner.lock().keys.stands_alone(key)
    }

    /// Says whether a hit on an answer of this age is to be executed: it is drawn for verification, or
    /// that age is not allowed any more. Counts the hit. `draw` is uniform in [0, 1).
    pub(crate) fn verifies(&self, key: u128, age: Duration, draw: f64, now: Instant) -> bool {
        self.refresh(now);
        let Some(bucket) = Bucket::of(age) else {
            return true;
        };
        if age <= self.allowed() && !self.stands_alone(key) {
            let before = self.hits[bucket.number()].fetch_add(1, Ordering::Relaxed);
            return is_verified(before.saturating_add(1), draw);
        }
        let mut inner = self.inner.lock();
        let own = inner.keys.get_mut(key);
        let Some(known) = own.filter(|known| age <= known.row.lifetime()) else {
            return true;
        };
        let hits = &mut known.hits[bucket.number()];
        *hits = hits.saturating_add(1);
        is_verified(*hits, draw)
    }

    /// Takes an observation: `key` was executed for `session`, `gap` after the dispatch of its last
    /// execution under the same epochs, and the answer was equal or not. A gap above 300 s is ignored.
    pub(crate) fn observe(
        &self,
        key: u128,
        session: u64,
        gap: Duration,
        equal: bool,
        now: Instant,
    ) {
        let Some(bucket) = Bucket::of(gap) else {
            return;
        };
        self.refresh(now);
        let at = self.clock(now);
        let mut inner = self.inner.lock();
        inner.counts[bucket.number()].add(equal);
        if equal {
            if inner.equal(&self.common.test, key, session, bucket, at) {
                self.hits[bucket.number()].store(0, Ordering::Relaxed);
            }
        } else {
            inner.different(&self.common.test, key, session, bucket, at);
        }
        self.publish(&inner);
        self.common.changed.store(true, Ordering::Relaxed);
    }

    /// Returns what is known, for people and metrics.
    pub(crate) fn status(&self) -> EvidenceStatus {
        self.refresh(Instant::now());
        let inner = self.inner.lock();
        let buckets = Bucket::all().map(|bucket| {
            let number = bucket.number();
            let (tally, counts) = (inner.row.tallies[number], inner.counts[number]);
            BucketStatus {
                up_to_s: EDGES[number],
                repeats: counts.repeats,
                different: counts.different,
                equal_weight: tally.equal,
                different_weight: tally.different,
                passes: inner.row.is_granted(bucket),
            }
        });
        let needed = self.common.test.fewest();
        EvidenceStatus {
            allowed: inner.row.lifetime(),
            repeats: sum(inner.counts.map(|counts| counts.repeats)),
            different: sum(inner.counts.map(|counts| counts.different)),
            needed: needed.is_finite().then_some(needed),
            keys: inner.keys.len(),
            keys_alone: inner.keys.alone(),
            keys_forgotten: inner.keys.forgotten(),
            buckets: buckets.collect(),
        }
    }

    /// Returns what is to be kept, aged until now.
    pub(crate) fn keep(&self, now: Instant) -> Kept {
        let mut inner = self.inner.lock();
        self.age(&mut inner, now);
        let keys = inner.keys.iter().map(|(key, known)| (key, known.clone()));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by_key(|(_, known)| known.used);
        Kept {
            row: inner.row.clone(),
            counts: inner.counts,
            forgotten: inner.keys.forgotten(),
            keys,
        }
    }

    /// Ages the evidence if that was not done for long.
    fn refresh(&self, now: Instant) {
        if self.clock(now) >= self.aged.load(Ordering::Relaxed).saturating_add(STEP) {
            self.age(&mut self.inner.lock(), now);
        }
    }

    fn age(&self, inner: &mut Inner, now: Instant) {
        let elapsed = now.saturating_duration_since(inner.aged);
        if elapsed.is_zero() {
            return;
        }
        let (test, factor) = (&self.common.test, ageing(elapsed.as_secs_f64()));
        inner.aged = now;
        inner.row.age(test, factor);
        inner.keys.age(test, factor, self.clock(now));
        self.aged.store(self.clock(now), Ordering::Relaxed);
        self.publish(inner);
    }

    /// Shows the hit path what is allowed now.
    fn publish(&self, inner: &Inner) {
        let seconds = u32::try_from(inner.row.lifetime().as_secs()).unwrap_or(0);
        self.allowed.store(seconds, Ordering::Relaxed);
        let any_alone = inner.keys.any_stands_alone();
        self.any_alone.store(any_alone, Ordering::Relaxed);
    }

    /// Returns the milliseconds of the tool's clock.
    fn clock(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.born);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Inner {
    /// Adds an equal observation. Returns true if the tool's evidence newly allows the bucket.
    fn equal(&mut self, test: &Test, key: u128, session: u64, bucket: Bucket, at: u64) -> bool {
        let known = self.keys.enter(test, &mut self.row, key);
        let number = bucket.number();
        let due = Credit {
            to_key: known.row.is_due(bucket, at),
            to_tool: !known.alone && self.row.is_due(bucket, at),
        };
        let credit = known.note_equal(session, bucket, at, due);
        if known
            .row
            .add_equal(test, bucket, f64::from(u8::from(credit.to_key)), at)
        {
            known.hits[number] = 0;
        }
        if known.alone {
            return false;
        }
        let left = (test.most_of_one_key() - known.contributed[number]).max(0.0);
        let weight = f64::from(u8::from(credit.to_tool)).min(left);
        known.contributed[number] += weight;
        self.row.add_equal(test, bucket, weight, at)
    }

    /// Adds a different observation: to the key's own evidence, and to the tool's if it is the key's
    /// first one. It counts once for each visit, but always where the bucket was allowed.
    fn different(&mut self, test: &Test, key: u128, session: u64, bucket: Bucket, at: u64) {
        let known = self.keys.enter(test, &mut self.row, key);
        let number = bucket.number();
        let before = known.note_different(session, bucket, at);
        if before.equal.to_key {
            known.row.remove_equal(bucket, 1.0);
        }
        if !before.different || known.row.is_granted(bucket) {
            known.row.add_different(bucket);
        }
        if known.alone {
            return;
        }
        if before.equal.to_tool {
            let taken_back = known.contributed[number].min(1.0);
            known.contributed[number] -= taken_back;
            self.row.remove_equal(bucket, taken_back);
        }
        self.row.add_different(bucket);
        self.keys.set_alone(key);
    }
}

impl Counts {
    fn add(&mut self, equal: bool) {
        self.repeats = self.repeats.saturating_add(1);
        self.different = self.different.saturating_add((!equal).into());
    }
}

fn sum(counts: [u64; BUCKETS]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
