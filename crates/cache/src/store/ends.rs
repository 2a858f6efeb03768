//! What happens to an entry of the moka store at its end.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use moka::notification::RemovalCause;
use tokio::time::Instant;

use super::entry::Entry;
use super::front::Front;
use super::returns::{Pushed, Returns, Slot};
use super::worth::Worth;
use super::{Cause, Watcher};

/// What happens to an entry at its end; what moka's listener knows.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) worth: Worth,
    pub(super) front: Front,
    pub(super) returns: Returns,
    pub(super) watcher: OnceWatcher,
    pub(super) evicted: AtomicU64,
    /// How often everything was cleared. An entry of an earlier era is not there any more.
    pub(super) era: AtomicU32,
}

#[derive(Default)]
pub(super) struct OnceWatcher(pub(super) OnceLock<Watcher>);

impl fmt::Debug for OnceWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher")
            .field(&self.0.get().is_some())
            .finish()
    }
}

impl Ends {
    /// Meets an entry that moka let go.
    pub(super) fn meet(&self, key: u128, slot: Slot, cause: RemovalCause) {
        self.front.remove(key);
        let cause = match cause {
            _ if !self.is_of_now(&slot) => Cause::Cleared,
            RemovalCause::Explicit => Cause::Cleared,
            _ if !slot.entry.is_servable_stale(Instant::now()) => Cause::Expired,
            RemovalCause::Expired => Cause::Expired,
            RemovalCause::Replaced => Cause::Replaced,
            RemovalCause::Size => Cause::Size,
        };
        if cause == Cause::Size {
            let bytes = weight(&slot.entry);
            let life = self.worth.another_life(&slot.entry, bytes);
            let slot = match life {
                None => slot,
                Some(odds) => {
                    let entry = slot.entry.clone();
                    match self.returns.push(key, slot, bytes) {
                        Pushed::Waits => return entry.begin_life(odds),
                        Pushed::Replaced(other) => {
                            entry.begin_life(odds);
                            return self.tell(&other.entry, Cause::Replaced);
                        }
                        Pushed::Dropped(slot) => slot,
                    }
                }
            };
            self.evicted.fetch_add(1, Ordering::Relaxed);
            self.tell(&slot.entry, cause);
        } else {
            self.tell(&slot.entry, cause);
        }
    }

    pub(super) fn is_of_now(&self, slot: &Slot) -> bool {
        slot.era == self.era.load(Ordering::Acquire)
    }

    pub(super) fn tell(&self, entry: &Entry, cause: Cause) {
        entry.discharge();
        if let Some(watcher) = self.watcher.0.get() {
            watcher(entry, cause);
        }
    }
}

/// What an entry takes in this store.
pub(super) fn weight(entry: &Entry) -> u64 {
    entry.bytes() + OVERHEAD
}

/// What moka spends on an entry: key, slot, three counted boxes, a list node, and its share of the
/// table. Measured with a counting allocator; `tests/memory.rs` holds it to the truth.
const OVERHEAD: u64 = 272;
