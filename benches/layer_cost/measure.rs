//! Runs something on one thread and on two, and keeps what each run took.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use callward::{ToolCall, ToolOutput};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use tower::{Service, ServiceExt};

use crate::calls::{Calls, Maker};

/// Calls in a run: so few that most runs are not interrupted, so many that reading the clock does
/// not show.
const CALLS: usize = 500;
/// How often for each call what needs none is done: caches are cold when a run begins.
const BARE: usize = 20;
/// Runs of each thread in a round, after one that warms up.
const RUNS: usize = 8;
/// A run of two threads counts if each had a processor for this share of the time.
const UNDISTURBED: f64 = 0.97;

/// What one run took, in nanoseconds a call.
#[derive(Debug, Clone, Copy)]
struct Run {
    wall: f64,
    processor: f64,
}

/// Does it with these calls, and returns what that took.
type Once = Box<dyn FnMut(&Runtime, Vec<ToolCall>) -> Run + Send>;

/// One thing to measure: makes, for each thread, what does it.
pub(crate) struct Subject {
    make: Box<dyn Fn() -> Once>,
    /// Nanoseconds a call, of each run that counts, with one thread and with two.
    runs: [Vec<f64>; 2],
    /// How many runs of two threads there were.
    pub(crate) tried: usize,
}

impl Subject {
    /// Measures a service, and what stands around it.
    pub(crate) fn service<S>(service: S) -> Self
    where
        S: Service<ToolCall, Response = ToolOutput> + Clone + Send + 'static,
        S::Error: std::fmt::Debug,
    {
        Self::new(move || {
            let mut service = service.clone();
            Box::new(move |runtime, calls| {
                runtime.block_on(async {
                    let clock = Clock::start();
                    let count = calls.len();
                    for call in calls {
                        let ready = service.ready().await.expect("a ready service");
                        black_box(ready.call(call).await.expect("an answer"));
                    }
                    clock.stop(count)
                })
            })
        })
    }

    /// Measures something that needs no call, and is so quick that it is done more often.
    pub(crate) fn bare(work: impl Fn() + Clone + Send + 'static) -> Self {
        Self::new(move || {
            let work = work.clone();
            Box::new(move |_, calls| {
                let count = BARE * calls.len();
                let clock = Clock::start();
                for _ in 0..count {
                    work();
                }
                clock.stop(count)
            })
        })
    }

    fn new(make: impl Fn() -> Once + 'static) -> Self {
        Self {
            make: Box::new(make),
            runs: [Vec::new(), Vec::new()],
            tried: 0,
        }
    }

    /// Runs one round with one thread, and one with two.
    pub(crate) fn round(&mut self, calls: Calls, round: usize) {
        let [alone, both] = &mut self.runs;
        let turn = AtomicUsize::new(0);
        let runs = work((self.make)(), Maker::new(calls, 3 * round), &turn, 1);
        alone.extend(runs.iter().map(|run| run.processor));

        let turn = AtomicUsize::new(0);
        let mine = (self.make)();
        let other = (self.make)();
        let (mine, other) = thread::scope(|scope| {
            let maker = |thread| Maker::new(calls, 3 * round + thread);
            let turn = &turn;
            let other = scope.spawn(move || work(other, maker(1), turn, 2));
            (work(mine, maker(2), turn, 2), other.join().unwrap())
        });
        self.tried += mine.len();
        for (mine, other) in mine.into_iter().zip(other) {
            let undisturbed = |run: &Run| run.processor > UNDISTURBED * run.wall;
            if undisturbed(&mine) && undisturbed(&other) {
                both.push((mine.processor + other.processor) / 2.0);
            }
        }
    }

    /// Returns the median run, and half of the range in which the middle half of runs lies.
    pub(crate) fn median(&self, threads: usize) -> Option<(f64, f64)> {
        let mut runs = self.runs.get(threads - 1)?.clone();
        runs.sort_by(f64::total_cmp);
        let at = |quarter: usize| runs.get(runs.len() * quarter / 4).copied();
        Some((at(2)?, (at(3)? - at(1)?) / 2.0))
    }

    /// How many runs of two threads count.
    pub(crate) fn counted(&self) -> usize {
        self.runs[1].len()
    }
}

/// Does all runs of one thread. Threads start each run together.
fn work(mut once: Once, mut maker: Maker, turn: &AtomicUsize, threads: usize) -> Vec<Run> {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let mut runs = Vec::with_capacity(RUNS + 1);
    for number in 0..=RUNS {
        let calls = maker.make(CALLS);
        turn.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while turn.load(Ordering::Acquire) < threads * (number + 1) {
            spins += 1;
            // the other thread may be waiting for this processor
            if spins.is_multiple_of(10_000) {
                thread::yield_now();
            }
            spin_loop();
        }
        runs.push(once(&runtime, calls));
    }
    runs.remove(0);
    runs
}

struct Clock {
    wall: Instant,
    processor: f64,
}

impl Clock {
    fn start() -> Self {
        Self {
            processor: processor_time(),
            wall: Instant::now(),
        }
    }

    fn stop(&self, calls: usize) -> Run {
        let wall = self.wall.elapsed().as_secs_f64() * 1e9;
        let processor = processor_time() - self.processor;
        Run {
            wall: wall / calls as f64,
            // reading it takes a moment of its own, which is no part of the run
            processor: processor.min(wall) / calls as f64,
        }
    }
}

/// How long this thread has had a processor, in nanoseconds.
#[cfg(unix)]
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Without such a clock the time on the wall stands for it: see how [`Clock::stop`] uses it.
#[cfg(not(unix))]
fn processor_time() -> f64 {
    f64::INFINITY
}
