//! The evidence about one tool in one partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::bucket::{BUCKETS, Bucket, BucketTallies, EDGES, is_verified};
use super::estimator::{Test, ageing};
use super::key::{Credit, KeyEvidence};
use super::keys::Keys;
use super::status::{BucketStatus, EvidenceStatus};

/// Evidence is aged in steps of at least this.
const STEP: Duration = Duration::from_secs(600);

/// What all evidences of one cache share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) test: Test,
    /// The number of keys of all tools.
    pub(crate) keys: Arc<AtomicUsize>,
    /// Whether anything was observed since the last snapshot.
    pub(crate) changed: AtomicBool,
}

/// The evidence about one tool in one partition.
#[derive(Debug)]
pub(crate) struct ToolEvidence {
    common: Arc<Common>,
    /// Its clock counts from here.
    born: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Of keys that do not stand alone.
    tallies: BucketTallies,
    keys: Keys,
    counts: [Counts; BUCKETS],
    /// Hits in each bucket since the tool's evidence allowed it.
    hits: [u32; BUCKETS],
    aged: Instant,
}

/// Observations of all keys, not weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    repeats: u64,
    different: u64,
}

/// A tool's evidence in the file. The tool's equal observations are recomputed from its keys.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SavedEvidence {
    tallies: BucketTallies,
    counts: [Counts; BUCKETS],
    /// See [`Keys::forgotten`].
    forgotten: u64,
    /// The most recently used last.
    keys: Vec<(u128, KeyEvidence)>,
}

impl ToolEvidence {
    /// Takes saved evidence, and multiplies all weights by `factor`, for the time since.
    pub(crate) fn restored(
        common: Arc<Common>,
        saved: SavedEvidence,
        factor: f64,
        now: Instant,
    ) -> Self {
        let (test, mut tallies) = (&common.test, saved.tallies);
        let mut keys = Keys::new(common.keys.clone());
        keys.restore(test, &mut tallies, saved.forgotten, saved.keys);
        keys.age(test, factor, 0);
        tallies.age(test, factor);
        let inner = Inner {
            tallies,
            keys,
            counts: saved.counts,
            hits: [0; BUCKETS],
            aged: now,
        };
        Self {
            common,
            born: now,
            inner: Mutex::new(inner),
        }
    }

    /// Returns the lifetime for keys that do not stand alone.
    pub(crate) fn allowed(&self) -> Duration {
        self.inner.lock().tallies.lifetime()
    }

    /// Returns the lifetime for this key: the tool's or its own, whichever is longer, and its own
    /// only if it stands alone.
    pub(crate) fn allowed_for(&self, key: u128, now: Instant) -> Duration {
        let inner = self.aged(now);
        let own = inner
            .keys
            .map
            .get(&key)
            .map(|known| known.tallies.lifetime());
        let own = own.unwrap_or_default();
        if inner.keys.stands_alone(key) {
            own
        } else {
            own.max(inner.tallies.lifetime())
        }
    }

    /// Returns `true` if a hit on an answer of this age is to be executed: it is drawn for
    /// verification, or that age is not allowed any more. Counts the hit. `draw` is uniform in [0,
    /// 1).
    pub(crate) fn verifies(&self, key: u128, age: Duration, draw: f64, now: Instant) -> bool {
        let Some(bucket) = Bucket::of(age) else {
            return true;
        };
        let inner = &mut *self.aged(now);
        let hits = if age <= inner.tallies.lifetime() && !inner.keys.stands_alone(key) {
            &mut inner.hits
        } else {
            let own = inner.keys.map.get_mut(&key);
            match own.filter(|known| age <= known.tallies.lifetime()) {
                Some(known) => &mut known.hits,
                None => return true,
            }
        };
        let hits = &mut hits[bucket.0];
        *hits = hits.saturating_add(1);
        is_verified(*hits, draw)
    }

    /// Takes an observation: `key` was executed for `session`, `gap` after the dispatch of its last
    /// execution under the same epochs, and the answer was equal or not. A gap above 300 s is
    /// ignored.
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
        let (test, at) = (&self.common.test, self.clock(now));
        let mut inner = self.aged(now);
        let counts = &mut inner.counts[bucket.0];
        counts.repeats = counts.repeats.saturating_add(1);
        if equal {
            inner.add_equal(test, key, session, bucket, at);
        } else {
            counts.different = counts.different.saturating_add(1);
            inner.add_different(test, key, session, bucket, at);
        }
        self.common.changed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> EvidenceStatus {
        let inner = self.aged(Instant::now());
        let buckets = Bucket::all().map(|bucket| {
            let (tally, counts) = (inner.tallies.of[bucket.0], inner.counts[bucket.0]);
            BucketStatus {
                up_to_s: EDGES[bucket.0],
                repeats: counts.repeats,
                different: counts.different,
                equal_weight: tally.equal,
                different_weight: tally.different,
                passes: inner.tallies.granted[bucket.0],
            }
        });
        let needed = self.common.test.fewest;
        let sum = |of: fn(&Counts) -> u64| inner.counts.iter().map(of).fold(0, u64::saturating_add);
        EvidenceStatus {
            allowed: inner.tallies.lifetime(),
            repeats: sum(|counts| counts.repeats),
            different: sum(|counts| counts.different),
            needed: needed.is_finite().then_some(needed),
            keys: inner.keys.map.len(),
            keys_alone: inner.keys.alone,
            keys_forgotten: inner.keys.forgotten,
            buckets: buckets.collect(),
        }
    }

    /// Returns the evidence for the file, aged until now.
    pub(crate) fn save(&self, now: Instant) -> SavedEvidence {
        let mut inner = self.inner.lock();
        self.age(&mut inner, now);
        let keys = inner.keys.iter().map(|(key, known)| (key, known.clone()));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by_key(|(_, known)| known.used);
        SavedEvidence {
            tallies: inner.tallies.clone(),
            counts: inner.counts,
            forgotten: inner.keys.forgotten,
            keys,
        }
    }

    /// Locks the evidence, and ages it if it was not aged for long.
    fn aged(&self, now: Instant) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock();
        if now.saturating_duration_since(inner.aged) >= STEP {
            self.age(&mut inner, now);
        }
        inner
    }

    fn age(&self, inner: &mut Inner, now: Instant) {
        let elapsed = now.saturating_duration_since(inner.aged);
        if elapsed.is_zero() {
            return;
        }
        let (test, factor) = (&self.common.test, ageing(elapsed.as_secs_f64()));
        inner.aged = now;
        inner.tallies.age(test, factor);
        inner.keys.age(test, factor, self.clock(now));
    }

    /// Returns the milliseconds of the tool's clock.
    fn clock(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.born);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    #[cfg(test)]
    pub(super) fn stands_alone(&self, key: u128) -> bool {
        self.inner.lock().keys.stands_alone(key)
    }
}

impl Inner {
    fn add_equal(&mut self, test: &Test, key: u128, session: u64, bucket: Bucket, at: u64) {
        let known = self.keys.enter(test, &mut self.tallies, key);
        let due = Credit {
            to_key: known.tallies.is_due(bucket, at),
            to_tool: !known.alone && self.tallies.is_due(bucket, at),
        };
        let credit = known.note_equal(session, bucket, at, due);
        let weight = f64::from(u8::from(credit.to_key));
        if known.tallies.add_equal(test, bucket, weight, at) {
            known.hits[bucket.0] = 0;
        }
        if known.alone {
            return;
        }
        let left = (test.most_of_one_key() - known.contributed[bucket.0]).max(0.0);
        let weight = f64::from(u8::from(credit.to_tool)).min(left);
        known.contributed[bucket.0] += weight;
        if self.tallies.add_equal(test, bucket, weight, at) {
            self.hits[bucket.0] = 0;
        }
    }

    /// Adds a different observation: to the key's own evidence, and to the tool's if it is the
    /// key's first one. It counts once for each visit, but always where the bucket was allowed.
    fn add_different(&mut self, test: &Test, key: u128, session: u64, bucket: Bucket, at: u64) {
        let known = self.keys.enter(test, &mut self.tallies, key);
        let before = known.note_different(session, bucket, at);
        if before.equal.to_key {
            known.tallies.of[bucket.0].remove_equal(1.0);
        }
        if !before.different || known.tallies.granted[bucket.0] {
            known.tallies.add_different(bucket);
        }
        if known.alone {
            return;
        }
        if before.equal.to_tool {
            let taken_back = known.contributed[bucket.0].min(1.0);
            known.contributed[bucket.0] -= taken_back;
            self.tallies.of[bucket.0].remove_equal(taken_back);
        }
        self.tallies.add_different(bucket);
        self.keys.set_alone(key);
    }
}
