//! A few entries before the store: those that are asked for again and again.
//!
//! moka notes each look-up, so that it knows what was used last, and that costs more than the
//! look-up itself. An entry that was found a few times is therefore put in front, in a place that its
//! key decides, and found there without a lock and without a note. Each [`TURN`]th time it is looked
//! up in moka all the same, so that moka does not take it for unused.
//!
//! The front never outlives the store: whoever takes an entry from the store takes it from here
//! *after* that, and whoever puts one here looks *after* that whether the store still has it. So one
//! of the two sees the other, and nothing stays here that is gone there.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::time::Instant;

use super::Found;
use super::entry::{Entry, Inner};

/// Places for entries, each for the keys that it is the place of.
#[derive(Debug)]
pub(super) struct Front(Box<[ArcSwapOption<Inner>]>);

/// How often an entry is found here before it is looked up in the store again.
const TURN: u32 = 32;
/// In which step of its turn an entry is put here, if it was found twice at least.
const FIRST: u32 = 3;
/// From 16 MiB on.
const LARGE: u64 = 16 << 20;
/// 256 KiB of places; what they hold is in the store anyway.
const MOST: usize = 32 * 1024;

impl Front {
    /// Makes one place for each 8 KiB of a small store, fewer than there are entries: it soon drops what it
    /// does not know to be used. A large one takes its time, and gets as many places as it has entries of
    /// usual size, so that few entries have to share one.
    pub(super) fn for_bytes(max_bytes: u64) -> Self {
        let each = if max_bytes < LARGE { 13 } else { 11 };
        let wanted = usize::try_from(max_bytes >> each).unwrap_or(usize::MAX);
        // the power of two that is not more than that
        let places = wanted
            .min(MOST)
            .checked_ilog2()
            .map_or(0, |power| 1 << power);
        Self((0..places).map(|_| ArcSwapOption::empty()).collect())
    }

    /// Returns what is here under a key, unless it is time to ask the store.
    pub(super) fn find(&self, key: u128) -> Option<Entry> {
        self.with(key, |entry| Entry::from(Arc::clone(entry)))
    }

    /// Returns what a call takes of the entry that is here under a key, and counts the hit; nothing if it
    /// is time to ask the store.
    #[inline]
    pub(super) fn look(&self, key: u128, now: Instant) -> Option<Found> {
        self.with(key, |entry| {
            entry.touch();
            match entry.hit(now) {
                Some(hit) => Found::Fresh(hit),
                None => Found::Ended(Entry::from(Arc::clone(entry))),
            }
        })
    }

    #[inline]
    fn with<R>(&self, key: u128, act: impl FnOnce(&Arc<Inner>) -> R) -> Option<R> {
        let placed = self.place(key)?.load();
        let entry = placed.as_ref().filter(|entry| entry.key() == key)?;
        let turn = (entry.hits() + offset(key)) % TURN == FIRST - 1;
        (!turn).then(|| act(entry))
    }

    /// Puts an entry here that was found often enough; says whether it did.
    pub(super) fn put(&self, key: u128, entry: &Entry) -> bool {
        let turn = (entry.hits() + offset(key)) % TURN == FIRST;
        if !turn || entry.hits() < 2 || entry.key() != key {
            return false;
        }
        let Some(place) = self.place(key) else {
            return false;
        };
        let there = place.load().as_ref().is_some_and(|placed| entry.is(placed));
        if !there {
            place.store(Some(entry.inner().clone()));
        }
        !there
    }

    /// Takes away what is here under a key.
    pub(super) fn remove(&self, key: u128) {
        let Some(place) = self.place(key) else {
            return;
        };
        let placed = place.load();
        if placed.as_ref().is_some_and(|placed| placed.key() == key) {
            // unless another has taken the place meanwhile
            place.compare_and_swap(&placed, None);
        }
    }

    /// Takes everything away.
    pub(super) fn clear(&self) {
        for place in &self.0 {
            place.store(None);
        }
    }

    fn place(&self, key: u128) -> Option<&ArcSwapOption<Inner>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "part of a uniform hash is a uniform hash"
        )]
        let number = (key >> 64) as usize & self.0.len().saturating_sub(1);
        self.0.get(number)
    }
}

/// Spreads the turns of entries that are asked for at the same pace.
fn offset(key: u128) -> u32 {
    u32::from(key.to_le_bytes()[0]) % TURN
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callward_core::ToolOutput;

    use super::*;

    fn entry(key: u128, hits: u32) -> Entry {
        let hour = Duration::from_secs(3600);
        let entry = Entry::new(ToolOutput::text("x"), hour, Instant::now()).keyed(key);
        (0..hits).for_each(|_| entry.touch());
        entry
    }

    #[test]
    fn an_entry_comes_to_the_front_when_it_was_found_often_and_goes_back_in_turn() {
        let front = Front::for_bytes(1 << 20);
        assert!(!front.put(32, &entry(32, FIRST - 1)));
        let often = entry(32, FIRST);
        assert!(front.put(32, &often));
        assert!(!front.put(32, &often), "it is there");
        let found: Vec<bool> = (0..2 * TURN)
            .map(|_| {
                let found = front.find(32).is_some();
                often.touch();
                found
            })
            .collect();
        assert_eq!(found.iter().filter(|found| !**found).count(), 2);
        assert!(front.find(64).is_none());
    }

    #[test]
    fn what_is_taken_away_is_gone_and_nothing_else() {
        let front = Front::for_bytes(1 << 20);
        // the same place, another key
        assert!(front.put(32, &entry(32, FIRST)));
        front.remove(64);
        assert!(front.find(32).is_some());
        assert!(front.put(64, &entry(64, FIRST)));
        assert!(front.find(32).is_none());
        front.remove(64);
        assert!(front.find(64).is_none());
        assert!(front.put(64, &entry(64, FIRST)));
        front.clear();
        assert!(front.find(64).is_none());
    }

    #[test]
    fn a_small_store_has_no_front() {
        let front = Front::for_bytes(4096);
        assert!(!front.put(32, &entry(32, FIRST)));
        assert!(front.find(32).is_none());
        assert_eq!(Front::for_bytes(100_000).0.len(), 8);
        assert_eq!(Front::for_bytes(LARGE - 1).0.len(), 1024);
        assert_eq!(Front::for_bytes(LARGE).0.len(), 8 * 1024);
        assert_eq!(Front::for_bytes(u64::MAX).0.len(), MOST);
    }
}
