//! Which calls failed, how often, and when: the state that decides.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::LoopGuardConfig;

/// The calls that failed last, by what stands for them.
///
/// Only who has failures on the books takes a lock. Two numbers are read before: how many calls are held
/// at all, and how many of sessions that share a slot with this one. Both are written under the lock of
/// the call's shard, and may be read a moment late: a success that misses the failure before it leaves
/// that failure standing, which costs a try at worst, and no longer than a window.
///
/// A write of any session resets all calls at once: each remembers the number of writes at its last
/// failure, and counts as forgotten when that number has changed.
#[derive(Debug)]
pub(crate) struct Table {
    shards: [Mutex<HashMap<u128, Failing>>; SHARDS],
    held: AtomicUsize,
    slots: [AtomicU32; SLOTS],
    /// How many writes may have changed something since the first failure was held.
    writes: AtomicU64,
    failures: u32,
    wait: Duration,
    window: Duration,
    per_shard: usize,
}

/// A call that failed, and did not succeed since.
#[derive(Debug)]
struct Failing {
    failures: u32,
    last: Instant,
    told: Box<str>,
    /// The last try that was let through began then; one before the last failure is over.
    trying: Option<Instant>,
    session: u64,
    /// The table's `writes` at the last failure.
    writes: u64,
}

/// What to do with a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Send it.
    Go,
    /// Answer it here.
    Stop {
        failures: u32,
        told: Box<str>,
        wait: Duration,
    },
    /// Send it: it is the one try of this wait. To be given back if it comes to no end.
    Try,
}

impl Table {
    /// `config` is valid.
    pub(crate) fn new(config: &LoopGuardConfig) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            held: AtomicUsize::new(0),
            slots: std::array::from_fn(|_| AtomicU32::new(0)),
            writes: AtomicU64::new(0),
            failures: config.failures,
            wait: config.wait,
            window: config.window,
            per_shard: config.capacity.div_ceil(SHARDS),
        }
    }

    /// Says whether anything failed at all, of anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.held() == 0
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Says whether a session may have failures on the books.
    pub(crate) fn has_any_of(&self, session: u64) -> bool {
        self.slot(session)
            .is_some_and(|slot| slot.load(Ordering::Relaxed) > 0)
    }

    /// Decides about a call that is about to be sent.
    pub(crate) fn admit(&self, key: u128, now: Instant) -> Admission {
        let Some(mut shard) = self.shard(key) else {
            return Admission::Go;
        };
        self.forget_if_reset(&mut shard, key, self.writes());
        let Some(call) = shard.get_mut(&key) else {
            return Admission::Go;
        };
        if call.failures < self.failures {
            return Admission::Go;
        }
        // whichever is later: the last failure, or the try that may still bring the next
        let since = call
            .trying
            .map_or(call.last, |trying| trying.max(call.last));
        let held_back = now.saturating_duration_since(since);
        match self.wait.checked_sub(held_back) {
            None | Some(Duration::ZERO) => {
                call.trying = Some(now);
                Admission::Try
            }
            Some(wait) => Admission::Stop {
                failures: call.failures,
                told: call.told.clone(),
                wait,
            },
        }
    }

    /// Takes in that a call failed. If it is a write that may have changed something all the same
    /// (`wrote`), it resets all other calls.
    pub(crate) fn fail(&self, session: u64, key: u128, now: Instant, told: Box<str>, wrote: bool) {
        let Some(mut shard) = self.shard(key) else {
            return;
        };
        let before = if wrote {
            self.count_write()
        } else {
            self.writes()
        };
        self.forget_if_reset(&mut shard, key, before);
        // its own write does not reset it, or a call that times out would never be held back
        let writes = before.wrapping_add(u64::from(wrote));
        if let Some(call) = shard.get_mut(&key) {
            let in_a_row = call.failures >= self.failures || self.is_within(call.last, now);
            call.failures = if in_a_row {
                call.failures.saturating_add(1)
            } else {
                1
            };
            call.last = now;
            call.told = told;
            call.writes = writes;
            return;
        }
        self.make_room(&mut shard, now);
        let failing = Failing {
            failures: 1,
            last: now,
            told,
            trying: None,
            session,
            writes,
        };
        shard.insert(key, failing);
        self.count(session, 1);
    }

    /// Takes in that a call succeeded: it has never failed.
    pub(crate) fn succeed(&self, key: u128) {
        if let Some(mut shard) = self.shard(key)
            && let Some(call) = shard.remove(&key)
        {
            self.count(call.session, -1);
        }
    }

    /// Takes in that a write may have changed something: all calls but this one are reset.
    pub(crate) fn reset_others(&self, key: u128) {
        let Some(mut shard) = self.shard(key) else {
            return;
        };
        let before = self.count_write();
        if let Some(call) = shard.get_mut(&key)
            && call.writes == before
        {
            call.writes = before.wrapping_add(1);
        }
    }

    /// Takes in that a write may have changed something: all calls are reset.
    pub(crate) fn reset(&self) {
        self.count_write();
    }

    /// Gives back the try that began at this time and came to no end.
    pub(crate) fn give_back(&self, key: u128, began: Instant) {
        if let Some(mut shard) = self.shard(key)
            && let Some(call) = shard.get_mut(&key)
            && call.trying == Some(began)
        {
            call.trying = None;
        }
    }

    /// Forgets what is long past and, if that is not enough, what failed longest ago.
    fn make_room(&self, shard: &mut HashMap<u128, Failing>, now: Instant) {
        let writes = self.writes();
        shard.retain(|_, call| {
            let keeps = call.writes == writes && !self.is_past(call, now);
            if !keeps {
                self.count(call.session, -1);
            }
            keeps
        });
        while shard.len() >= self.per_shard {
            let oldest = shard.iter().min_by_key(|(_, call)| call.last);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                return;
            };
            if let Some(call) = shard.remove(&key) {
                self.count(call.session, -1);
            }
        }
    }

    /// Removes a call that a write has reset since it failed last.
    fn forget_if_reset(&self, shard: &mut HashMap<u128, Failing>, key: u128, writes: u64) {
        let is_reset = shard.get(&key).is_some_and(|call| call.writes != writes);
        if is_reset && let Some(call) = shard.remove(&key) {
            self.count(call.session, -1);
        }
    }

    fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Counts a write; returns how many there were before it.
    fn count_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::AcqRel)
    }

    /// Says whether nothing depends on a failure any more. One that holds calls back is remembered for
    /// two windows: in the second, a try that fails closes again at once.
    fn is_past(&self, call: &Failing, now: Instant) -> bool {
        let windows = if call.failures < self.failures { 1 } else { 2 };
        now.saturating_duration_since(call.last) > self.window.saturating_mul(windows)
    }

    fn is_within(&self, last: Instant, now: Instant) -> bool {
        now.saturating_duration_since(last) <= self.window
    }

    /// Counts a call in or out, under the lock of its shard.
    fn count(&self, session: u64, by: i8) {
        let Some(slot) = self.slot(session) else {
            return;
        };
        if by > 0 {
            self.held.fetch_add(1, Ordering::Relaxed);
            slot.fetch_add(1, Ordering::Relaxed);
        } else {
            self.held.fetch_sub(1, Ordering::Relaxed);
            slot.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn slot(&self, session: u64) -> Option<&AtomicU32> {
        self.slots.get((session % SLOTS as u64) as usize)
    }

    fn shard(&self, key: u128) -> Option<parking_lot::MutexGuard<'_, HashMap<u128, Failing>>> {
        let shard = self.shards.get((key % SHARDS as u128) as usize);
        shard.map(Mutex::lock)
    }
}

const SHARDS: usize = 16;
/// Two sessions that share a slot look once where nothing is.
const SLOTS: usize = 256;

#[cfg(test)]
mod tests;
