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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn queue_matches_a_deque_with_removal(
            steps in proptest::collection::vec((0_u8..4, 0_u32..6), 0..60)
        ) {
            let mut queue = Queue::default();
            let mut model: VecDeque<(u32, u64)> = VecDeque::new();
            for (size, (step, key)) in (1..).zip(steps) {
                let place = model.iter().position(|(held, _)| *held == key);
                let held = place.map(|place| model[place]);
                match step {
                    0 => {
                        queue.push(key, size);
                        model.retain(|(held, _)| *held != key);
                        model.push_back((key, size));
                    }
                    1 => {
                        prop_assert_eq!(queue.remove(key), held.map(|(_, size)| size));
                        model.retain(|(held, _)| *held != key);
                    }
                    2 => prop_assert_eq!(queue.pop(), model.pop_front()),
                    _ => {
                        prop_assert_eq!(queue.touch(key), held.is_some());
                        model.retain(|(held, _)| *held != key);
                        model.extend(held);
                    }
                }
                prop_assert_eq!(queue.oldest(), model.front().copied());
                prop_assert_eq!(queue.weight(), model.iter().map(|(_, size)| size).sum::<u64>());
                for key in 0..7 {
                    prop_assert_eq!(queue.contains(key), model.iter().any(|(held, _)| *held == key));
                }
            }
            // the remaining order is the same
            while let Some(left) = queue.pop() {
                prop_assert_eq!(Some(left), model.pop_front());
            }
            prop_assert!(model.is_empty());
        }
    }
}
