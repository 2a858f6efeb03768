//! The policies the cache is compared with, as simulators: they decide what is kept, and keep
//! nothing but keys.
//!
//! Each is written from its description, without the shortcuts that concurrency asks for, and
//! takes constant or logarithmic time a request. The same requests give the same hits.

mod belady;
mod fifo;
mod lfu;
mod lru;
mod queue;
mod s3_fifo;
mod sketch;
mod trivial;
mod w_tiny_lfu;

pub use belady::Belady;
pub use fifo::Fifo;
pub use lfu::Lfu;
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
pub use trivial::{NoCache, Unbounded};
pub use w_tiny_lfu::WTinyLfu;

pub(crate) use sketch::mix;

/// Decides what a bounded cache keeps.
///
/// ```
/// use callward_replay::policies::{Lru, Simulator};
///
/// let mut lru = Lru::new(2);
/// let hits = [0, 1, 0, 2, 1, 0].map(|key| lru.access(key, 1));
/// assert_eq!(hits, [false, false, true, false, false, false]);
/// ```
pub trait Simulator {
    /// Asks for a key, and stores it if it is not there; says whether it was.
    ///
    /// Keys are dense numbers: memory is taken for all up to the largest. `size` counts against
    /// the capacity; what is larger than that is not stored. The size of what is kept is the one it
    /// was stored with.
    fn access(&mut self, key: u32, size: u64) -> bool;

    /// Returns what everything kept weighs.
    fn weight(&self) -> u64;
}
