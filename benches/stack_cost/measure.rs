//! Runs something on one thread and on two, and keeps what each run took.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use callward::ToolOutput;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::calls::runtime;

/// Runs of each round, after the one that warms up.
const RUNS: usize = 8;
/// Calls of a run.
pub(crate) const RUN: usize = 256;

/// Does it once for each of these numbers; returns how long that took.
pub(crate) type Once = Box<dyn FnMut(&Runtime, &[usize]) -> Duration + Send>;

/// One thing to measure.
pub(crate) struct Subject {
    distinct: usize,
    make: Box<dyn Fn() -> Once>,
    /// Nanoseconds a call of each run, with one thread and with two.
    pub(crate) runs: [Vec<f64>; 2],
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

impl Subject {
    /// Measures something that is done over this many distinct things. `make` makes what does it,
    /// for each thread.
    pub(crate) fn new(distinct: usize, make: impl Fn() -> Once + 'static) -> Self {
        Self {
            distinct,
            make: Box::new(make),
            runs: [Vec::new(), Vec::new()],
            allocations: 0.0,
            bytes: 0.0,
        }
    }

    /// Runs one round with this many threads.
    pub(crate) fn round(&mut self, threads: usize) {
        let barrier = Arc::new(Barrier::new(threads));
        let distinct = self.distinct;
        let working: Vec<_> = (0..threads)
            .map(|thread| {
                let (mut once, barrier) = ((self.make)(), barrier.clone());
                thread::spawn(move || {
                    let runtime = runtime();
                    let mut numbers = Numbers::new(distinct, thread);
                    once(&runtime, &numbers.next(distinct));
                    barrier.wait();
                    let mut run = || once(&runtime, &numbers.next(RUN)).as_secs_f64();
                    let runs: Vec<_> = (0..RUNS).map(|_| run() * 1e9 / RUN as f64).collect();
                    runs
                })
            })
            .collect();
        for runs in working {
            self.runs[threads - 1].extend(runs.join().unwrap());
        }
    }

    /// Counts what one call allocates, on average.
    pub(crate) fn count(&mut self) {
        let (mut once, runtime) = ((self.make)(), runtime());
        let mut numbers = Numbers::new(self.distinct, 0);
        once(&runtime, &numbers.next(self.distinct));
        let [few, many] = [RUN, 2 * RUN].map(|calls| {
            let numbers = numbers.next(calls);
            allocation_counter::measure(|| {
                once(&runtime, &numbers);
            })
        });
        // what does not grow with the calls is not theirs; nor is the list of prepared ones
        let per_call = |few: u64, many: u64| many.saturating_sub(few) as f64 / RUN as f64;
        self.allocations = per_call(few.count_total, many.count_total);
        self.bytes = per_call(few.bytes_total, many.bytes_total);
    }

    /// Does it with each distinct thing, this many times.
    pub(crate) fn settle(&self, times: usize) {
        let (mut once, runtime) = ((self.make)(), runtime());
        let mut numbers = Numbers::new(self.distinct, 0);
        for _ in 0..times {
            once(&runtime, &numbers.next(self.distinct));
        }
    }

    /// Does it so often, after it was done with each distinct thing.
    pub(crate) fn repeat(&self, calls: usize) {
        let (mut once, runtime) = ((self.make)(), runtime());
        let mut numbers = Numbers::new(self.distinct, 0);
        once(&runtime, &numbers.next(self.distinct));
        once(&runtime, &numbers.next(calls));
    }

    /// Returns the median run and half of the range in which the middle half of runs is.
    pub(crate) fn median(&self, threads: usize) -> Option<(f64, f64)> {
        let mut runs = self.runs.get(threads - 1)?.clone();
        runs.sort_by(f64::total_cmp);
        let at = |quarter: usize| runs.get(runs.len() * quarter / 4).copied();
        Some((at(2)?, (at(3)? - at(1)?) / 2.0))
    }

    /// Returns the median of one thread.
    pub(crate) fn nanos(&self) -> f64 {
        self.median(1).map_or(f64::NAN, |(median, _)| median)
    }

    /// Returns the medians of each round.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = f64> {
        self.runs[0].chunks(RUNS).map(|runs| {
            let mut runs = runs.to_vec();
            runs.sort_by(f64::total_cmp);
            runs[runs.len() / 2]
        })
    }
}

/// Which of this many things is next.
struct Numbers {
    distinct: usize,
    next: usize,
}

impl Numbers {
    /// Starting elsewhere in each thread, so that they do not walk in step.
    const fn new(distinct: usize, thread: usize) -> Self {
        Self {
            distinct,
            next: thread * 511,
        }
    }

    fn next(&mut self, count: usize) -> Vec<usize> {
        let from = self.next;
        self.next += count;
        // a stride, so that neighbours in memory are not neighbours in time
        (from..self.next)
            .map(|turn| turn * 389 % self.distinct)
            .collect()
    }
}

/// The part of a row whose time is taken, and whose instructions are counted.
#[inline(never)]
pub(crate) fn clocked(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Does something that needs no runtime.
pub(crate) fn bare(mut work: impl FnMut(usize) + Send + 'static) -> Once {
    Box::new(move |_, numbers| clocked(|| numbers.iter().for_each(|number| work(*number))))
}

/// Prepares something for each number, and then does it with each in turn and drops what it
/// answers.
pub(crate) fn prepared<P, F, E>(
    mut prepare: impl FnMut(usize) -> P + Send + 'static,
    mut call: impl FnMut(P) -> F + Send + 'static,
) -> Once
where
    F: Future<Output = Result<ToolOutput, E>>,
    E: std::fmt::Debug,
{
    Box::new(move |runtime, numbers| {
        let prepared: Vec<P> = numbers.iter().map(|number| prepare(*number)).collect();
        clocked(|| {
            runtime.block_on(async {
                for one in prepared {
                    black_box(call(one).await.expect("an answer"));
                }
            });
        })
    })
}
