//! What simulated servers are made of: so many workers and one line before them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// So many workers and one line before them, first come, first served.
///
/// All moments are counted from the same one, whichever the simulation likes. When a call ends is
/// known as soon as it comes, so nothing has to be driven.
#[derive(Debug, Clone)]
pub struct WorkQueue {
    /// When each worker is free.
    workers: BinaryHeap<Reverse<Duration>>,
    /// When each waiting call begins, in order.
    begin: VecDeque<Duration>,
}

impl WorkQueue {
    /// Starts with nothing to do.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: vec![Reverse(Duration::ZERO); workers].into(),
            begin: VecDeque::new(),
        }
    }

    /// Returns how many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Returns how many calls wait for a worker.
    pub fn waiting(&mut self, now: Duration) -> usize {
        while self.begin.front().is_some_and(|begin| *begin <= now) {
            self.begin.pop_front();
        }
        self.begin.len()
    }

    /// Returns when work on a call would begin that comes now.
    #[must_use]
    pub fn begins(&self, now: Duration) -> Duration {
        let free = self.workers.peek().map_or(Duration::MAX, |free| free.0);
        free.max(now)
    }

    /// Takes a call, and returns when it is done. `work` says what it takes if it begins then.
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
    fn calls_beyond_the_workers_wait_for_the_first_that_is_free() {
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
    fn what_a_call_takes_may_depend_on_when_it_begins() {
        let mut queue = WorkQueue::new(1);
        queue.push(secs(0), |_| secs(3));
        let end = queue.push(secs(1), |begin| begin * 2);
        assert_eq!(end, secs(9));
    }
}
