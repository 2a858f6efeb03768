//! A queue of keys out of which any key can be taken: what most policies are made of.

/// No key: the end of a queue.
const NONE: u32 = u32::MAX;

/// A value for each key, without a hash: keys are dense numbers. What was never set is the default.
#[derive(Debug, Clone, Default)]
pub(crate) struct PerKey<T>(Vec<T>);

impl<T: Copy + Default> PerKey<T> {
    pub(crate) fn get(&self, key: u32) -> T {
        self.0.get(key as usize).copied().unwrap_or_default()
    }

    pub(crate) fn at(&mut self, key: u32) -> Option<&mut T> {
        let place = key as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, T::default());
        }
        self.0.get_mut(place)
    }

    pub(crate) fn set(&mut self, key: u32, value: T) {
        if let Some(place) = self.at(key) {
            *place = value;
        }
    }
}

/// Keys in the order they were put in, with their sizes. Everything takes constant time.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    links: PerKey<Link>,
    newest: u32,
    oldest: u32,
    weight: u64,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    newer: u32,
    older: u32,
    size: u64,
    linked: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            newer: NONE,
            older: NONE,
            size: 0,
            linked: false,
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            links: PerKey::default(),
            newest: NONE,
            oldest: NONE,
            weight: 0,
        }
    }
}

impl Queue {
    /// Returns what all keys in it weigh.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        self.links.get(key).linked
    }

    /// Returns the key that has been in it longest, and its size.
    pub(crate) fn oldest(&self) -> Option<(u32, u64)> {
        (self.oldest != NONE).then(|| (self.oldest, self.links.get(self.oldest).size))
    }

    /// Puts a key in as the newest. A key that is in it already is moved, and takes the new size.
    pub(crate) fn push(&mut self, key: u32, size: u64) {
        self.remove(key);
        let older = self.newest;
        self.links.set(
            key,
            Link {
                newer: NONE,
                older,
                size,
                linked: true,
            },
        );
        self.set_newer(older, key);
        self.newest = key;
        self.weight += size;
    }

    /// Takes a key out, and returns its size if it was in.
    pub(crate) fn remove(&mut self, key: u32) -> Option<u64> {
        let link = self.links.get(key);
        if !link.linked {
            return None;
        }
        self.links.set(key, Link::default());
        self.set_newer(link.older, link.newer);
        self.set_older(link.newer, link.older);
        self.weight -= link.size;
        Some(link.size)
    }

    /// Takes the oldest key out.
    pub(crate) fn pop(&mut self) -> Option<(u32, u64)> {
        let (key, size) = self.oldest()?;
        self.remove(key);
        Some((key, size))
    }

    /// Makes a key the newest; says whether it is in it.
    pub(crate) fn touch(&mut self, key: u32) -> bool {
        let size = self.remove(key);
        if let Some(size) = size {
            self.push(key, size);
        }
        size.is_some()
    }

    fn set_newer(&mut self, key: u32, newer: u32) {
        if key == NONE {
            self.oldest = newer;
        } else if let Some(link) = self.links.at(key) {
            link.newer = newer;
        }
    }

    fn set_older(&mut self, key: u32, older: u32) {
        if key == NONE {
            self.newest = older;
        } else if let Some(link) = self.links.at(key) {
            link.older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_deque_that_keys_can_be_taken_out_of(
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
            // whatever order is left, it comes out the same
            while let Some(left) = queue.pop() {
                prop_assert_eq!(Some(left), model.pop_front());
            }
            prop_assert!(model.is_empty());
        }
    }
}
