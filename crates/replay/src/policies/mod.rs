//! The policies that the cache is compared with, as simulators that store keys only.
//!
//! Each follows its published description without the shortcuts that concurrency needs, and takes
//! constant or logarithmic time per request. The same requests give the same hits.

mod belady;
mod queue;
mod queued;
mod s3_fifo;
mod sketch;
mod w_tiny_lfu;

pub use belady::Belady;
pub use queued::Queued;
pub use s3_fifo::S3Fifo;
pub use w_tiny_lfu::WTinyLfu;

/// Decides what a bounded cache keeps.
///
/// ```
/// use callward_replay::policies::{Queued, Simulator};
///
/// let mut lru = Queued::lru(2);
/// let hits = [0, 1, 0, 2, 1, 0].map(|key| lru.access(key, 1));
/// assert_eq!(hits, [false, false, true, false, false, false]);
/// ```
pub trait Simulator {
    /// Requests a key and stores it if it is absent. Returns `true` if it was present.
    ///
    /// `size` counts against the capacity, and a key larger than the capacity is not stored. An
    /// entry has the size that it was stored with.
    fn access(&mut self, key: u32, size: u64) -> bool;

    /// Returns the sizes of all entries together.
    fn weight(&self) -> u64;
}
