//! Which server each key has: bounded, and forgotten when it is not used.
//!
//! Shards, each with a lock that readers share and a list of slots. A look-up hashes nothing (keys are
//! hashes already), allocates nothing, and writes one number if the millisecond has changed: when the
//! key was used last. moka, which the cache keeps its answers in, notes each look-up in a queue of its
//! own, and that costs several times the look-up; its order of use is exact, and here a rough one is
//! enough.
//!
//! Time is ours, so that it can be paused: a slot says when it was used, and whoever meets it says what
//! time it is. What has expired takes room until its key comes again, or until others come: each new
//! key looks at two slots beside its own, in turn, and clears away what has expired. Where a shard is
//! full it looks at eight, and the one that was unused for longest makes room.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{ReplicaSetId, ServerId};
use parking_lot::RwLock;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::{AffinityExpired, ExpiryCause, KeyDigest, KeyKind};

/// Which server each key has.
#[derive(Debug)]
pub(crate) struct Table {
    shards: Box<[RwLock<Shard>]>,
    per_shard: usize,
    /// In milliseconds, as all times of slots.
    ttl: u64,
    origin: Instant,
}

#[derive(Debug, Default)]
struct Shard {
    slots: Vec<Slot>,
    /// Where each key has its slot.
    places: HashMap<u64, usize, BuildHasherDefault<KeyHasher>>,
    /// The slot that is looked at next, to see whether it has expired.
    hand: usize,
}

#[derive(Debug)]
struct Slot {
    key: u64,
    kind: KeyKind,
    told: KeyDigest,
    set: ReplicaSetId,
    server: ServerId,
    /// Where the server stood in its set when that was looked up last.
    hint: AtomicU32,
    used: AtomicU64,
}

/// A key and its server, for the table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) kind: KeyKind,
    /// What the key is told of as.
    pub(crate) told: KeyDigest,
    pub(crate) set: ReplicaSetId,
    pub(crate) server: ServerId,
    /// Where the server stands in its set.
    pub(crate) hint: usize,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// It has a server that stands here in its set.
    At(usize),
    /// It has a server that is in its set no more.
    Lost,
}

/// What became of the table.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// The key has the server that was set. Otherwise another call was first, and that one's holds.
    pub(crate) is_set: bool,
    /// What has come to its end.
    pub(crate) ended: SmallVec<[AffinityExpired; 2]>,
}

impl Table {
    /// Remembers `max_keys` keys at most, each for `ttl` after its last use.
    pub(crate) fn new(max_keys: usize, ttl: Duration) -> Self {
        let shards = (max_keys / LEAST_OF_SHARD).clamp(1, SHARDS);
        Self {
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            per_shard: (max_keys / shards).max(1),
            ttl: millis(ttl),
            origin: Instant::now(),
        }
    }

    /// Returns how long a key is remembered after its last use.
    pub(crate) const fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl)
    }

    /// Returns how many keys are remembered, counting those that have expired and were not met since.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.read().slots.len())
            .sum()
    }

    /// Finds the server of a key, and counts it as used unless this is a `peek`. `locate` says where in
    /// its set a server stands; it gets a place to look at first.
    pub(crate) fn find(
        &self,
        key: u64,
        now: Instant,
        peek: bool,
        locate: impl FnOnce(&ServerId, usize) -> Option<usize>,
    ) -> Found {
        let now = self.at(now);
        let Some(shard) = self.shard(key) else {
            return Found::Nothing;
        };
        let shard = shard.read();
        let Some(slot) = shard.slot(key).filter(|slot| !self.is_past(slot, now)) else {
            return Found::Nothing;
        };
        if !peek {
            slot.touch(now);
        }
        let hint = slot.hint.load(Ordering::Relaxed);
        let place = locate(&slot.server, hint as usize);
        match place {
            None => Found::Lost,
            Some(place) => {
                let place_hint = as_hint(place);
                if place_hint != hint {
                    slot.hint.store(place_hint, Ordering::Relaxed);
                }
                Found::At(place)
            }
        }
    }

    /// Gives a key its server. `lost` says of the server that the key has already why it is to lose it;
    /// if it is not, that one stays.
    pub(crate) fn set(
        &self,
        entry: Entry,
        now: Instant,
        lost: impl FnOnce(&ServerId) -> Option<ExpiryCause>,
    ) -> Change {
        let now = self.at(now);
        let mut change = Change::default();
        let Some(shard) = self.shard(entry.key) else {
            return change;
        };
        let mut shard = shard.write();
        if let Some(place) = shard.places.get(&entry.key).copied()
            && let Some(slot) = shard.slots.get_mut(place)
        {
            let cause = if self.is_past(slot, now) {
                Some(ExpiryCause::Ttl)
            } else {
                lost(&slot.server)
            };
            if let Some(cause) = cause {
                let before = std::mem::replace(slot, Slot::new(entry, now));
                change.ended.push(before.end(cause));
                change.is_set = true;
            }
            return change;
        }
        self.make_room(&mut shard, now, &mut change);
        let place = shard.slots.len();
        shard.places.insert(entry.key, place);
        shard.slots.push(Slot::new(entry, now));
        change.is_set = true;
        change
    }

    /// Clears away what has expired of the slots whose turn it is, and what was unused for longest where
    /// there is no room.
    fn make_room(&self, shard: &mut Shard, now: u64, change: &mut Change) {
        let is_full = shard.slots.len() >= self.per_shard;
        let looks = if is_full { LOOKS_IF_FULL } else { LOOKS };
        let mut oldest: Option<(u64, u64)> = None;
        for _ in 0..looks {
            if shard.hand >= shard.slots.len() {
                shard.hand = 0;
            }
            let Some(slot) = shard.slots.get(shard.hand) else {
                return;
            };
            if self.is_past(slot, now) {
                // another slot comes to this place, and is looked at next
                change.ended.extend(shard.take(slot.key, ExpiryCause::Ttl));
                continue;
            }
            let used = slot.used.load(Ordering::Relaxed);
            if oldest.is_none_or(|(before, _)| used < before) {
                oldest = Some((used, slot.key));
            }
            shard.hand += 1;
        }
        if shard.slots.len() >= self.per_shard
            && let Some((_, key)) = oldest
        {
            change.ended.extend(shard.take(key, ExpiryCause::Capacity));
        }
    }

    fn is_past(&self, slot: &Slot, now: u64) -> bool {
        now.saturating_sub(slot.used.load(Ordering::Relaxed)) >= self.ttl
    }

    fn at(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.origin))
    }

    fn shard(&self, key: u64) -> Option<&RwLock<Shard>> {
        // other bits than those that lead to a place within the shard
        self.shards.get((key >> 32) as usize % self.shards.len())
    }
}

impl Shard {
    fn slot(&self, key: u64) -> Option<&Slot> {
        self.slots.get(*self.places.get(&key)?)
    }

    fn take(&mut self, key: u64, cause: ExpiryCause) -> Option<AffinityExpired> {
        let place = self.places.remove(&key)?;
        if place >= self.slots.len() {
            return None;
        }
        let slot = self.slots.swap_remove(place);
        if let Some(moved) = self.slots.get(place) {
            self.places.insert(moved.key, place);
        }
        Some(slot.end(cause))
    }
}

impl Slot {
    fn new(entry: Entry, now: u64) -> Self {
        Self {
            key: entry.key,
            kind: entry.kind,
            told: entry.told,
            set: entry.set,
            server: entry.server,
            hint: AtomicU32::new(as_hint(entry.hint)),
            used: AtomicU64::new(now),
        }
    }

    fn touch(&self, now: u64) {
        // a store takes the line from all other readers, and many calls come within one millisecond
        if self.used.load(Ordering::Relaxed) < now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    fn end(self, cause: ExpiryCause) -> AffinityExpired {
        AffinityExpired {
            kind: self.kind,
            key: self.told,
            set: self.set,
            server: self.server,
            cause,
        }
    }
}

fn as_hint(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

fn millis(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1000)
        .saturating_add(u64::from(duration.subsec_millis()))
}

/// Takes a key as its own hash: it is one, and a keyed one.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

const SHARDS: usize = 64;
/// With fewer keys than this for each, shards would be full at very different times.
const LEAST_OF_SHARD: usize = 256;
const LOOKS: usize = 2;
const LOOKS_IF_FULL: usize = 8;

#[cfg(test)]
mod tests;
