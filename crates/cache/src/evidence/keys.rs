//! The keys of one tool, a bounded number of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bucket::{Bucket, BucketTallies};
use super::estimator::Test;
use super::key::KeyEvidence;

/// The keys remembered for one tool.
pub(crate) const MAX_KEYS_OF_ONE: usize = 4_096;
/// The keys remembered for all tools together, beyond [`MIN_KEYS_OF_ONE`].
pub(crate) const MAX_KEYS: usize = 131_072;
/// The keys that each tool may have, however many the others have.
const MIN_KEYS_OF_ONE: usize = 16;

/// The keys of one tool. Those used least recently are dropped; those that differed only where they
/// are more than half. A key dropped takes its part of the tool's evidence along.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) map: HashMap<u128, KeyEvidence>,
    /// How many keys stand alone.
    pub(crate) alone: usize,
    /// How many keys that stood alone were dropped. With one or more, a new key stands alone, as it
    /// may be one of them.
    pub(crate) forgotten: u64,
    /// Counts uses.
    turn: u64,
    /// The keys of all tools.
    total: Arc<AtomicUsize>,
}

impl Keys {
    pub(crate) fn new(total: Arc<AtomicUsize>) -> Self {
        Self {
            map: HashMap::new(),
            alone: 0,
            forgotten: 0,
            turn: 0,
            total,
        }
    }

    /// Returns `true` if the tool's evidence does not count for this key: it differed once, or it
    /// may have.
    pub(crate) fn stands_alone(&self, key: u128) -> bool {
        self.map
            .get(&key)
            .map_or(self.forgotten > 0, |known| known.alone)
    }

    /// Finds the key or makes it, dropping others from it and from `tallies` where there are too
    /// many.
    pub(crate) fn enter(
        &mut self,
        test: &Test,
        tallies: &mut BucketTallies,
        key: u128,
    ) -> &mut KeyEvidence {
        if !self.map.contains_key(&key) {
            self.remove_oldest(test, tallies);
        }
        self.turn += 1;
        let (turn, stands_alone) = (self.turn, self.forgotten > 0);
        let known = self.map.entry(key).or_insert_with(|| {
            self.total.fetch_add(1, Ordering::Relaxed);
            self.alone += usize::from(stands_alone);
            KeyEvidence::new(stands_alone)
        });
        known.used = turn;
        known
    }

    /// From now on only its own evidence counts for the key.
    pub(crate) fn set_alone(&mut self, key: u128) {
        if let Some(known) = self.map.get_mut(&key).filter(|known| !known.alone) {
            known.alone = true;
            self.alone += 1;
        }
    }

    /// Multiplies all weights, and drops the keys of which nothing is left.
    pub(crate) fn age(&mut self, test: &Test, factor: f64, now: u64) {
        let before = self.map.len();
        self.map.retain(|_, known| known.age(test, factor, now));
        self.total
            .fetch_sub(before - self.map.len(), Ordering::Relaxed);
    }

    /// Returns the keys of which something is known, with their evidence.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, &KeyEvidence)> {
        let known = self.map.iter().filter(|(_, known)| !known.is_empty());
        known.map(|(key, known)| (*key, known))
    }

    /// Takes saved keys, the most recently used last, and works out the equal observations in
    /// `tallies` from their contributions.
    pub(crate) fn restore(
        &mut self,
        test: &Test,
        tallies: &mut BucketTallies,
        forgotten: u64,
        keys: Vec<(u128, KeyEvidence)>,
    ) {
        for tally in &mut tallies.of {
            tally.equal = 0.0;
        }
        let left_out = keys.len().saturating_sub(MAX_KEYS_OF_ONE);
        let lost = keys.iter().take(left_out).filter(|(_, known)| known.alone);
        self.forgotten = forgotten.saturating_add(lost.count() as u64);
        for (key, mut known) in keys.into_iter().skip(left_out) {
            self.turn += 1;
            known.used = self.turn;
            if self.map.contains_key(&key) {
                continue;
            }
            for bucket in Bucket::all() {
                let part = &mut known.contributed[bucket.0];
                let most = test.most_of_one_key().min(known.tallies.of[bucket.0].equal);
                *part = part.min(most).max(0.0);
                tallies.of[bucket.0].equal += *part;
            }
            self.alone += usize::from(known.alone);
            self.total.fetch_add(1, Ordering::Relaxed);
            self.map.insert(key, known);
        }
    }

    fn remove_oldest(&mut self, test: &Test, tallies: &mut BucketTallies) {
        let has_its_own = self.map.len() >= MIN_KEYS_OF_ONE;
        let all_are_full = self.total.load(Ordering::Relaxed) >= MAX_KEYS;
        if self.map.len() < MAX_KEYS_OF_ONE && !(has_its_own && all_are_full) {
            return;
        }
        let drop_alone = self.alone * 2 > self.map.len();
        let candidates = self.map.iter().filter(|(_, key)| key.alone == drop_alone);
        let mut oldest: Vec<(u64, u128)> =
            candidates.map(|(key, known)| (known.used, *key)).collect();
        // a sixteenth at once, so that not each new key walks over all of them
        let count = (self.map.len() / 16).max(1).min(oldest.len());
        if count < oldest.len() {
            oldest.select_nth_unstable(count);
        }
        for (_, key) in oldest.into_iter().take(count) {
            self.remove(tallies, key);
        }
        tallies.revoke(test);
    }

    fn remove(&mut self, tallies: &mut BucketTallies, key: u128) {
        let Some(known) = self.map.remove(&key) else {
            return;
        };
        self.total.fetch_sub(1, Ordering::Relaxed);
        for bucket in Bucket::all() {
            tallies.of[bucket.0].remove_equal(known.contributed[bucket.0]);
        }
        if known.alone {
            self.alone -= 1;
            self.forgotten = self.forgotten.saturating_add(1);
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.total.fetch_sub(self.map.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_keys_are_dropped_with_what_they_contributed() {
        let (test, mut tallies) = (Test::new(0.01), BucketTallies::default());
        let total = Arc::<AtomicUsize>::default();
        let mut keys = Keys::new(total.clone());
        let bucket = Bucket::all().next().unwrap();
        for key in 0..MAX_KEYS_OF_ONE as u128 {
            keys.enter(&test, &mut tallies, key).contributed[0] = 1.0;
            tallies.add_equal(&test, bucket, 1.0, 0);
        }
        keys.enter(&test, &mut tallies, 0);
        assert!(tallies.granted[bucket.0]);
        keys.enter(&test, &mut tallies, 1 << 70);
        let left = MAX_KEYS_OF_ONE - MAX_KEYS_OF_ONE / 16;
        assert_eq!(keys.map.len(), left + 1);
        assert_eq!(tallies.of[bucket.0].equal, left as f64);
        assert!(
            keys.map.contains_key(&0) && !keys.map.contains_key(&1) && keys.map.contains_key(&257)
        );
        assert_eq!(total.load(Ordering::Relaxed), keys.map.len());
        drop(keys);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_dropped_key_that_differed_does_not_gain_the_trust_of_its_tool() {
        let (test, mut tallies) = (Test::new(0.01), BucketTallies::default());
        let mut keys = Keys::new(Arc::default());
        let half = MAX_KEYS_OF_ONE as u128 / 2;
        for key in 0..half {
            keys.enter(&test, &mut tallies, key);
            keys.set_alone(key);
        }
        // up to a half of the places they stay, whatever comes
        for key in half..20_000 {
            keys.enter(&test, &mut tallies, key);
        }
        assert!((0..half).all(|key| keys.stands_alone(key)));
        assert!(!keys.stands_alone(20_000) && keys.forgotten == 0);
        for key in 30_000..32_000 {
            keys.enter(&test, &mut tallies, key);
            keys.set_alone(key);
        }
        assert!(keys.forgotten > 0 && !keys.map.contains_key(&0));
        assert!(keys.stands_alone(0) && keys.stands_alone(40_000));
        assert!(keys.enter(&test, &mut tallies, 0).alone);
        assert!(keys.map.len() <= MAX_KEYS_OF_ONE);
    }

    #[test]
    fn all_tools_together_have_a_bounded_number_of_keys() {
        let (test, mut tallies) = (Test::new(0.01), BucketTallies::default());
        let mut keys = Keys::new(Arc::new(AtomicUsize::new(MAX_KEYS)));
        for key in 0..100 {
            keys.enter(&test, &mut tallies, key);
        }
        assert_eq!(keys.map.len(), MIN_KEYS_OF_ONE);
        assert!(keys.map.contains_key(&99) && !keys.map.contains_key(&83));
    }
}
