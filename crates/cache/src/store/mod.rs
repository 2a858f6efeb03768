//! Where entries are kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callward_core::ToolOutput;
use tokio::time::Instant;

mod account;
mod ends;
mod entry;
mod front;
mod hasher;
#[cfg(feature = "lean")]
mod lean;
mod moka;
mod refusals;
mod returns;
mod worth;

use crate::reason::Cause;
pub use account::Account;
pub use entry::Entry;
#[cfg(feature = "lean")]
pub use lean::LeanStore;
pub use moka::MokaStore;

/// Where entries are kept. [`MokaStore`] is the one of a single process; one that is shared over
/// a network would be another.
///
/// # What an implementation must hold
///
/// - *It answers at once.* [`get`](Self::get) is called on the hit path, on a worker thread of the
///   runtime: it neither blocks, nor waits for a network, nor panics. A shared tier keeps a copy of
///   what it was asked for in the process, and fetches the rest beside the calls.
/// - *It may forget, and never invent.* `get` returns what was last [`put`](Self::put) under this
///   very key, or nothing; in particular, an older entry never comes back over a newer one, and
///   nothing comes back that was removed or cleared before the look-up began. Keys hold everything
///   that tells calls apart, and the epoch too, so that an entry never has to be changed in place.
/// - *It need not look at the time.* What has ended is found like anything else; the layer decides
///   on its own clock what may still be served. Ended entries are the first to go, however.
/// - *It keeps its bound.* What it counts in bytes is what it takes in memory: the entry's own
///   [`bytes`](Entry::bytes) and what it spends on it.
/// - *It tells.* It calls [`Entry::touch`] on what it finds and [`Entry::charge`] on what it takes
///   in, [`Entry::discharge`] and its watcher about what it drops, with neither of its own locks held that a call into
///   the store would take.
///
/// Keys are keyed hashes: uniform already, and not to be guessed by whoever makes calls.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Returns the entry, if it is still there, and counts the hit.
    fn get(&self, key: u128) -> Option<Entry>;

    /// Returns what a call takes of the entry, if it is still there, and counts the hit. Default: by way
    /// of [`get`](Self::get). Threads that hit one entry write in turn to the count of its clones: a
    /// store that clones none makes them meet once less.
    fn look(&self, key: u128, now: Instant) -> Option<Found> {
        self.get(key).map(|entry| entry.look(now))
    }

    /// Returns the entry, if it is still there, for nobody's call: it is best not counted. Default: as
    /// [`get`](Self::get).
    fn peek(&self, key: u128) -> Option<Entry> {
        self.get(key)
    }

    /// Keeps an entry, in the place of any other of that key; or says why not.
    fn put(&self, key: u128, entry: Entry) -> Admission;

    /// Forgets one entry.
    fn remove(&self, key: u128);

    /// Forgets everything.
    fn clear(&self);

    /// Says what is kept. May do pending housekeeping first: meant for dashboards, not for calls.
    fn usage(&self) -> StoreUsage;

    /// Names who is told of each entry that is dropped, and why. Only the first one named is told.
    fn watch(&self, watcher: Watcher);
}

/// What a call takes of an entry.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "an entry has ended or it has not")]
pub enum Found {
    /// It has not ended.
    Fresh(Hit),
    /// It has: for whoever may serve it all the same.
    Ended(Entry),
}

/// What a hit takes of an entry.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hit {
    /// The answer.
    pub output: ToolOutput,
    /// How much upstream time the hit saves, in nanoseconds.
    pub cost: u64,
    /// Which hit of the entry it is, from 1 on. Hits that race may count as one.
    pub number: u32,
    /// Whether the server stated the lifetime.
    pub stated: bool,
    ends: Instant,
    /// Nanoseconds.
    ttl: u64,
}

impl Hit {
    /// Returns when the entry was made.
    #[must_use]
    pub fn made(&self) -> Instant {
        self.ends - Duration::from_nanos(self.ttl)
    }
}

/// Who is told of dropped entries. Called in the middle of a store's work: it must neither block,
/// nor panic, nor call the store.
pub type Watcher = Arc<dyn Fn(&Entry, Cause) + Send + Sync>;

/// What became of an entry that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Admission {
    /// It is kept.
    Stored,
    /// It is larger than the whole store.
    TooLarge,
    /// The store is full, and what would have to go for it is worth far more.
    TooCheap,
}

impl Admission {
    /// Returns the word for reports: `stored`, `too_large` or `too_cheap`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::TooLarge => "too_large",
            Self::TooCheap => "too_cheap",
        }
    }
}

/// What a [`Store`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreUsage {
    /// How many entries there are.
    pub entries: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many entries were dropped to make room, since the start.
    pub evicted: u64,
}
