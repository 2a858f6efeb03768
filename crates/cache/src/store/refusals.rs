//! What was refused lately.

use std::sync::atomic::{AtomicU64, Ordering};

/// Remembers some of the keys that were refused, so that whoever is asked for again is taken.
#[derive(Debug)]
pub(super) struct Refusals(Box<[AtomicU64]>);

impl Default for Refusals {
    fn default() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Refusals {
    /// Says whether this key is to be refused: yes, unless it was not long ago.
    pub(super) fn refuse(&self, key: u128) -> bool {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "parts of a uniform hash are uniform hashes"
        )]
        let (place, mark) = ((key >> 64) as usize % PLACES, key as u64 | 1);
        let Some(place) = self.0.get(place) else {
            return true;
        };
        place.swap(mark, Ordering::Relaxed) != mark
    }
}

const PLACES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_is_not_refused() {
        let refusals = Refusals::default();
        assert!(refusals.refuse(7));
        assert!(refusals.refuse(1 << 64));
        assert!(!refusals.refuse(7));
    }
}
