//! The base of simulated servers: workers with one queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Workers with one FIFO queue.
///
/// All times count from one moment of the simulation. The end of a call is known at its arrival, so
/// nothing needs to be driven.
#[derive(Debug, Clone)]
pub struct WorkQueue {
    /// When each worker is free.
    workers: BinaryHeap<Reverse<Duration>>,
    /// When each waiting call begins, in order.
    begin: VecDeque<Duration>,
}

impl WorkQueue {
    /// Creates an idle queue.
    pub fn new(workers: usize) -> Self {
        Self {
            workers: vec![Reverse(Duration::ZERO); workers].into(),
            begin: VecDeque::new(),
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Returns the number of waiting calls.
    pub fn waiting(&mut self, now: Duration) -> usize {
        while self.begin.front().is_some_and(|begin| *begin <= now) {
            self.begin.pop_front();
        }
        self.begin.len()
    }

    /// Returns when a call that arrives now would begin.
    pub fn begins(&self, now: Duration) -> Duration {
        let free = self.workers.peek().map_or(Duration::MAX, |free| free.0);
        free.max(now)
    }

    /// Adds a call, and returns its end. `work` returns its duration, given its start.
    pub fn push(&mut self, now: Duration, work: impl FnOnce(Duration) -> Duration) -> Duration {
        let begin = self.begins(now);
        self.workers.pop();
        let end = begin.saturating_add(work(begin));
        self.workers.push(Reverse(end));
        if begin > now {
            self.begin.push_back(begin);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn calls_beyond_the_workers_wait_for_the_first_free_one() {
        let mut queue = WorkQueue::new(2);
        let ends = [3, 5, 1, 1].map(|work| queue.push(secs(0), |_| secs(work)));
        assert_eq!(ends, [3, 5, 4, 5].map(secs));
        assert_eq!(queue.waiting(secs(2)), 2);
        assert_eq!(queue.waiting(secs(3)), 1);
        assert_eq!(queue.begins(secs(2)), secs(5));
        assert_eq!(queue.waiting(secs(4)), 0);
        assert_eq!(queue.begins(secs(9)), secs(9));
    }

    #[test]
    fn the_duration_may_depend_on_the_start() {
        let mut queue = WorkQueue::new(1);
        queue.push(secs(0), |_| secs(3));
        let end = queue.push(secs(1), |begin| begin * 2);
        assert_eq!(end, secs(9));
    }
}
