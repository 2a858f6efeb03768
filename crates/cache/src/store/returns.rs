//! What waits between two lives.
//!
//! moka tells of an eviction in the middle of its own work, where it must not be called. So what is
//! to live on waits here until the next `put` brings it back, and is found here meanwhile. What
//! waits counts as kept, and its bytes are bounded: what does not fit is dropped.
//!
//! Each `put` and each `remove` asks whether something waits under its key. That is one look into a
//! table, however much waits.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::entry::Entry;
use super::hasher::KeyHasher;

/// An entry in a store, with the number of clearings before it came.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) entry: Entry,
    pub(super) era: u32,
}

/// What waits between two lives.
#[derive(Debug)]
pub(super) struct Returns {
    max_bytes: u64,
    waiting: Mutex<Waiting>,
    /// How many wait: lets a look-up that found nothing pass without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    slots: HashMap<u128, Waiter, BuildHasherDefault<KeyHasher>>,
    /// Who came after whom, by key and turn. One that was removed or replaced is still here, and is
    /// passed over when its turn comes.
    order: VecDeque<(u128, u64)>,
    bytes: u64,
    /// How many came so far.
    came: u64,
}

#[derive(Debug)]
struct Waiter {
    slot: Slot,
    bytes: u64,
    turn: u64,
}

/// What became of an entry that was to wait.
#[derive(Debug)]
pub(super) enum Pushed {
    /// It waits.
    Waits,
    /// Of two of its key the newer one waits; this is the other, to be dropped.
    Replaced(Slot),
    /// There was no room.
    Dropped(Slot),
}

impl Returns {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Lets an entry wait that takes so many bytes, if there is room.
    pub(super) fn push(&self, key: u128, slot: Slot, bytes: u64) -> Pushed {
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let turn = waiting.came;
        let pushed = match waiting.slots.entry(key) {
            Place::Occupied(there) if there.get().slot.entry.made() > slot.entry.made() => {
                return Pushed::Replaced(slot);
            }
            Place::Occupied(mut there) => {
                let total = waiting.bytes - there.get().bytes + bytes;
                if total > self.max_bytes {
                    return Pushed::Dropped(slot);
                }
                waiting.bytes = total;
                Pushed::Replaced(there.insert(Waiter { slot, bytes, turn }).slot)
            }
            Place::Vacant(place) => {
                let total = waiting.bytes + bytes;
                if total > self.max_bytes {
                    return Pushed::Dropped(slot);
                }
                waiting.bytes = total;
                place.insert(Waiter { slot, bytes, turn });
                Pushed::Waits
            }
        };
        waiting.came += 1;
        waiting.order.push_back((key, turn));
        self.count.store(waiting.slots.len(), Ordering::Release);
        pushed
    }

    /// Takes so much of what waits, at most, in the order it came.
    pub(super) fn take(&self, most: usize) -> Vec<(u128, Slot, u64)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let mut taken = Vec::with_capacity(most.min(waiting.slots.len()));
        while taken.len() < most
            && let Some((key, turn)) = waiting.order.pop_front()
        {
            if let Place::Occupied(there) = waiting.slots.entry(key)
                && there.get().turn == turn
            {
                let waiter = there.remove();
                waiting.bytes -= waiter.bytes;
                taken.push((key, waiter.slot, waiter.bytes));
            }
        }
        self.count.store(waiting.slots.len(), Ordering::Release);
        taken
    }

    /// Finds the entry that waits under this key.
    pub(super) fn find(&self, key: u128) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        let waiting = self.waiting.lock();
        waiting.slots.get(&key).map(|waiter| waiter.slot.clone())
    }

    /// Returns what waited under this key, to be dropped.
    pub(super) fn remove(&self, key: u128) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        let mut waiting = self.waiting.lock();
        let removed = waiting.slots.remove(&key)?;
        waiting.bytes -= removed.bytes;
        self.count.store(waiting.slots.len(), Ordering::Release);
        Some(removed.slot)
    }

    /// Returns how many wait, and how many bytes they take.
    pub(super) fn usage(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.slots.len() as u64, waiting.bytes)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callward_core::ToolOutput;
    use tokio::time::Instant;

    use super::*;

    fn slot(text: &str, made: Instant) -> Slot {
        let entry = Entry::new(ToolOutput::text(text), Duration::from_secs(3600), made);
        Slot { entry, era: 0 }
    }

    fn full(of: u128) -> Returns {
        let returns = Returns::new(u64::MAX);
        let now = Instant::now();
        for key in 0..of {
            assert!(matches!(
                returns.push(key, slot("x", now), 1),
                Pushed::Waits
            ));
        }
        returns
    }

    #[test]
    fn asking_for_one_key_moves_nothing_else() {
        let returns = full(1000);
        let counted = allocation_counter::measure(|| {
            assert!(returns.remove(5000).is_none());
            drop(returns.remove(500));
            drop(returns.find(700));
        });
        assert_eq!(counted.count_total, 0);
        assert_eq!(returns.usage(), (999, 999));
    }

    #[test]
    fn no_more_is_taken_than_asked_for_and_what_came_first_goes_first() {
        let returns = full(10);
        drop(returns.remove(1));
        let keys = |most| -> Vec<u128> {
            let taken = returns.take(most).into_iter();
            taken.map(|(key, ..)| key).collect()
        };
        assert_eq!(keys(3), [0, 2, 3]);
        assert_eq!(returns.usage(), (6, 6));
        assert_eq!(keys(usize::MAX), [4, 5, 6, 7, 8, 9]);
        assert_eq!(returns.usage(), (0, 0));
    }

    #[test]
    fn of_two_of_one_key_the_newer_one_waits() {
        let returns = Returns::new(100);
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let older = slot("older", now);
        drop(returns.push(1, older.clone(), 10));
        for (pushed, bytes) in [(slot("newer", later), 20), (older, 30)] {
            let Pushed::Replaced(dropped) = returns.push(1, pushed, bytes) else {
                panic!("two of one key");
            };
            assert_eq!(dropped.entry.output().to_text(), "older");
        }
        assert_eq!(returns.usage(), (1, 20));
        let taken = returns.take(usize::MAX);
        assert_eq!(taken.len(), 1, "once, however often its key came");
    }
}
