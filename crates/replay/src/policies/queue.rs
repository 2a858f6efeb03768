//! A queue of keys that also removes any key from its middle.

use std::collections::{BTreeMap, HashMap};

/// Keys in the order of insertion, with their sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    order: BTreeMap<u64, u32>,
    /// The place in the order, and the size.
    entries: HashMap<u32, (u64, u64)>,
    next: u64,
    weight: u64,
}

impl Queue {
    /// Returns the sizes of all keys together.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        self.entries.contains_key(&key)
    }

    /// Returns the key that was inserted first, and its size.
    pub(crate) fn oldest(&self) -> Option<(u32, u64)> {
        let (_, key) = self.order.first_key_value()?;
        Some((*key, self.entries.get(key)?.1))
    }

    /// Inserts a key as the newest. A key that is present moves, and takes the new size.
    pub(crate) fn push(&mut self, key: u32, size: u64) {
        self.remove(key);
        self.order.insert(self.next, key);
        self.entries.insert(key, (self.next, size));
        self.next += 1;
        self.weight += size;
    }

    /// Removes a key and returns its size.
    pub(crate) fn remove(&mut self, key: u32) -> Option<u64> {
        let (place, size) = self.entries.remove(&key)?;
        self.order.remove(&place);
        self.weight -= size;
        Some(size)
    }

    /// Removes the oldest key.
    pub(crate) fn pop(&mut self) -> Option<(u32, u64)> {
        let (key, size) = self.oldest()?;
        self.remove(key);
        Some((key, size))
    }

    /// Makes a key the newest. Returns `true` if it is present.
    pub(crate) fn touch(&mut self, key: u32) -> bool {
        let size = self.remove(key);
        if let Some(size) = size {
            self.push(key, size);
        }
        size.is_some()
    }
}
