//! Counts that threads do not hand to and fro.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `N` numbers that many threads add to, and that are read now and then.
///
/// A number in one place would be handed from processor to processor, and a locked instruction costs more
/// than the whole rest of a count. So each of the first few threads that add has a lane of its own, which
/// nobody else writes to; further ones share one. Nothing is lost, and nothing is counted twice. A lane
/// takes 128 bytes, from the first time its thread adds something.
///
/// ```
/// use callward_core::Lanes;
///
/// let [hits, bytes] = [0, 1];
/// let lanes = Lanes::<2>::new();
/// lanes.add([1, 4096]);
/// lanes.add([1, 100]);
/// assert_eq!(lanes.sum()[hits], 2);
/// assert_eq!(lanes.sum()[bytes], 4196);
/// ```
#[derive(Debug)]
pub struct Lanes<const N: usize> {
    own: [OnceLock<Box<Lane<N>>>; SEATS],
    shared: [AtomicU64; N],
}

/// Processors fetch lines of 64 bytes in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<const N: usize>([AtomicU64; N]);

impl<const N: usize> Lanes<N> {
    /// Starts at 0.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            own: [const { OnceLock::new() }; SEATS],
            shared: [const { AtomicU64::new(0) }; N],
        }
    }

    /// Adds to each of the numbers. They wrap around at 2^64.
    #[inline]
    pub fn add(&self, amounts: [u64; N]) {
        let seat = SEAT.try_with(|seat| seat.0).unwrap_or(STANDING);
        let Some(own) = self.own.get(seat) else {
            for (number, amount) in self.shared.iter().zip(amounts) {
                number.fetch_add(amount, Ordering::Relaxed);
            }
            return;
        };
        let lane = own.get_or_init(|| Box::new(Lane([const { AtomicU64::new(0) }; N])));
        for (number, amount) in lane.0.iter().zip(amounts) {
            // two steps: nobody else writes here
            let sum = number.load(Ordering::Relaxed).wrapping_add(amount);
            number.store(sum, Ordering::Relaxed);
        }
    }

    /// Returns what was added so far, by all threads.
    #[must_use]
    pub fn sum(&self) -> [u64; N] {
        let own = self.own.iter().filter_map(OnceLock::get);
        let all = own.map(|lane| &lane.0).chain([&self.shared]);
        all.fold([0; N], |mut sums, lane| {
            for (sum, number) in sums.iter_mut().zip(lane) {
                *sum = sum.wrapping_add(number.load(Ordering::Relaxed));
            }
            sums
        })
    }
}

impl<const N: usize> Default for Lanes<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// How many threads have lanes of their own.
const SEATS: usize = 8;
/// The place of a thread that has none.
const STANDING: usize = SEATS;

/// Which seats are taken, a bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The right to write to one lane of each [`Lanes`], from the first use of a thread to its end.
struct Seat(usize);

impl Seat {
    /// Takes the first seat that is free. Whoever had it before wrote before it was given back, and that
    /// is seen from here on.
    fn take() -> Self {
        let free = |taken: u32| (0..SEATS).find(|seat| taken & bit(*seat) == 0);
        let took = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            free(taken).map(|seat| taken | bit(seat))
        });
        Self(took.ok().and_then(free).unwrap_or(STANDING))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.0 != STANDING {
            TAKEN.fetch_and(!bit(self.0), Ordering::Release);
        }
    }
}

const fn bit(seat: usize) -> u32 {
    1 << seat
}

thread_local! {
    static SEAT: Seat = Seat::take();
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_seats() {
        let (lanes, barrier) = (Lanes::<2>::new(), Barrier::new(3 * SEATS));
        thread::scope(|scope| {
            for number in 0..3 * SEATS as u64 {
                let (lanes, barrier) = (&lanes, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    (0..1_000).for_each(|_| lanes.add([1, number]));
                    // all are seated at once
                    barrier.wait();
                });
            }
        });
        let all = 3 * SEATS as u64;
        assert_eq!(lanes.sum(), [all * 1_000, 1_000 * all * (all - 1) / 2]);
        assert!(lanes.shared[0].load(Ordering::Relaxed) > 0, "some stood");
    }

    #[test]
    fn a_seat_that_is_given_back_goes_on_where_it_was() {
        let lanes = Lanes::<1>::new();
        for _ in 0..200 {
            thread::scope(|scope| {
                scope.spawn(|| lanes.add([3]));
            });
        }
        assert_eq!(lanes.sum(), [600]);
    }

    #[test]
    fn numbers_wrap_around() {
        let lanes = Lanes::<1>::new();
        lanes.add([u64::MAX]);
        lanes.add([3]);
        assert_eq!(lanes.sum(), [2]);
    }
}
