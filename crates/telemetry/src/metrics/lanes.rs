//! A counter that threads do not hand to and fro.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts in as many places as there are processors, up to eight, each in a cache line of its own; a
/// thread keeps to one. Two threads that count in one place cost each other more than the rest of a
/// record together.
#[derive(Debug)]
pub(super) struct Lanes(Box<[Lane]>);

/// 128 bytes: processors fetch cache lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicU64);

impl Lanes {
    pub(super) fn new() -> Self {
        Self((0..lanes()).map(|_| Lane::default()).collect())
    }

    pub(super) fn add_one(&self) {
        let own = THIS.with(|own| *own) & (self.0.len() - 1);
        if let Some(lane) = self.0.get(own) {
            lane.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(&self) -> u64 {
        let counts = self.0.iter().map(|lane| lane.0.load(Ordering::Relaxed));
        counts.sum()
    }
}

/// A power of two.
fn lanes() -> usize {
    static LANES: OnceLock<usize> = OnceLock::new();
    *LANES.get_or_init(|| {
        let processors = std::thread::available_parallelism();
        processors.map_or(1, |n| n.get().min(8)).next_power_of_two()
    })
}

thread_local! {
    static THIS: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_their_sum() {
        let lanes = Lanes::new();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1_000).for_each(|_| lanes.add_one()));
            }
        });
        assert_eq!(lanes.sum(), 20_000);
    }
}
