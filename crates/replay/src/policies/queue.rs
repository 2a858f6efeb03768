//! A queue of keys that also removes any key from its middle.

use std::collections::{BTreeMap, HashMap};

/// Keys in the order of their rank and then of their insertion, with their sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    order: BTreeMap<Place, u32>,
    /// The place in the order, and the size.
    entries: HashMap<u32, (Place, u64)>,
    next: u64,
    weight: u64,
}

/// The rank, and the number of the insertion.
type Place = (u64, u64);

impl Queue {
    /// Returns the sizes of all keys together.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        self.entries.contains_key(&key)
    }

    /// Returns the key that was inserted first of those with the least rank, and its size.
    pub(crate) fn oldest(&self) -> Option<(u32, u64)> {
        let (_, key) = self.order.first_key_value()?;
        Some((*key, self.entries.get(key)?.1))
    }

    /// Inserts a key as the newest of rank 0. A key that is present moves, and takes the new size.
    pub(crate) fn push(&mut self, key: u32, size: u64) {
        self.take(key);
        self.insert(key, 0, size);
    }

    /// Removes a key and returns its size.
    pub(crate) fn remove(&mut self, key: u32) -> Option<u64> {
        self.take(key).map(|(_, size)| size)
    }

    /// Removes the oldest key.
    pub(crate) fn pop(&mut self) -> Option<(u32, u64)> {
        let (key, size) = self.oldest()?;
        self.take(key);
        Some((key, size))
    }

    /// Makes a key the newest of its rank. Returns `true` if it is present.
    pub(crate) fn touch(&mut self, key: u32) -> bool {
        self.raise(key, 0)
    }

    /// Adds to the rank of a key, and makes it the newest there. Returns `true` if it is present.
    pub(crate) fn raise(&mut self, key: u32, ranks: u64) -> bool {
        let found = self.take(key);
        if let Some((rank, size)) = found {
            self.insert(key, rank + ranks, size);
        }
        found.is_some()
    }

    fn insert(&mut self, key: u32, rank: u64, size: u64) {
        let place = (rank, self.next);
        self.order.insert(place, key);
        self.entries.insert(key, (place, size));
        self.next += 1;
        self.weight += size;
    }

    /// Removes a key, and returns its rank and size.
    fn take(&mut self, key: u32) -> Option<(u64, u64)> {
        let (place, size) = self.entries.remove(&key)?;
        self.order.remove(&place);
        self.weight -= size;
        Some((place.0, size))
    }
}
