//! How much a group of entries takes, known without looking for them.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many entries a group has, and how many bytes they take: those of one tool, say.
///
/// An entry made [`with_account`](super::Entry::with_account) adds itself when a store takes it
/// in, and takes itself out when the last copy of it is dropped. A result that is still being
/// handed to somebody therefore counts a moment longer than the store keeps it.
#[derive(Debug, Default)]
pub struct Account {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Account {
    /// Returns how many entries there are.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns how many bytes they take, keys and bookkeeping included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn take_out(&self, bytes: u64) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
