//! Forgetting what was computed for one principal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many epochs principals share. Two that share one are forgotten together.
const PLACES: usize = 256;

/// The epochs of principals, part of the key of all that is theirs alone.
#[derive(Debug)]
pub(crate) struct Principals {
    epochs: Box<[AtomicU64]>,
    /// Whether any was ever raised: until then no hit need look.
    raised: AtomicBool,
}

impl Default for Principals {
    fn default() -> Self {
        Self {
            epochs: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            raised: AtomicBool::new(false),
        }
    }
}

impl Principals {
    /// Returns the epoch of a principal, by its digest; `None` is everybody.
    pub(crate) fn epoch(&self, principal: Option<u128>) -> u64 {
        match principal {
            Some(principal) if self.raised.load(Ordering::SeqCst) => {
                self.place(principal).load(Ordering::SeqCst)
            }
            _ => 0,
        }
    }

    /// Makes what is this principal's alone unreachable.
    pub(crate) fn raise(&self, principal: u128) {
        self.place(principal).fetch_add(1, Ordering::SeqCst);
        self.raised.store(true, Ordering::SeqCst);
    }

    #[expect(clippy::indexing_slicing, reason = "modulo the length")]
    fn place(&self, principal: u128) -> &AtomicU64 {
        // a short name stands for itself: names that begin alike must not share an epoch
        let mixed =
            (principal ^ principal >> 61).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        &self.epochs[(mixed >> 64) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_is_raised_and_everybody_is_not() {
        let principals = Principals::default();
        assert_eq!(principals.epoch(Some(1)), 0);
        principals.raise(1);
        assert_eq!(principals.epoch(Some(1)), 1);
        assert_eq!(principals.epoch(Some(2)), 0);
        assert_eq!(principals.epoch(None), 0);
    }
}
