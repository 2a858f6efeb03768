//! What is measured, and how.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use callward_core::ToolCall;
use tokio::time::Instant;

use crate::calls::calls_asked;

/// Each pass warms up with all calls, and then times so many runs of so many calls: runs so short
/// that a busy machine takes the processor away in few of them, which the median leaves out.
pub(crate) const RUNS: usize = 8;
const RUN: usize = 256;

/// One thing to measure: makes, for each thread, what does it once with the call of a number.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether it is done with calls.
    calls: bool,
    make: Box<dyn Fn() -> Once>,
    pub(crate) allocated: u64,
    /// Nanoseconds a call of each run, with one thread and with two.
    runs: [Vec<f64>; 2],
}

/// Does it once with the call of each of these numbers; returns how long that took.
pub(crate) type Once = Box<dyn FnMut(&[usize]) -> Duration + Send>;

/// Does something with numbers alone.
pub(crate) fn timed(mut once: impl FnMut(usize) + Send + 'static) -> Once {
    Box::new(move |numbers| {
        let start = Instant::now();
        numbers.iter().for_each(|number| once(*number));
        start.elapsed()
    })
}

/// Does something with calls that were made before.
pub(crate) fn timed_with(
    calls: Arc<[ToolCall]>,
    mut once: impl FnMut(ToolCall) + Send + 'static,
) -> Once {
    Box::new(move |numbers| {
        let of = |number: &usize| calls[number % calls.len()].clone();
        #[expect(clippy::needless_collect, reason = "made before the clock starts")]
        let made: Vec<ToolCall> = numbers.iter().map(of).collect();
        let start = Instant::now();
        made.into_iter().for_each(&mut once);
        start.elapsed()
    })
}

impl Row {
    pub(crate) fn new(name: &'static str, make: impl Fn() -> Once + 'static) -> Self {
        Self {
            name,
            calls: name.starts_with("layer") || name.contains(": ") || name.starts_with("service"),
            make: Box::new(make),
            allocated: 0,
            runs: [Vec::new(), Vec::new()],
        }
    }

    /// Runs one pass on so many threads.
    pub(crate) fn pass(&mut self, threads: usize) {
        let barrier = Arc::new(Barrier::new(threads));
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let (mut once, barrier) = ((self.make)(), barrier.clone());
                thread::spawn(move || {
                    // starting elsewhere, so that threads do not walk in step
                    let from = number * 511;
                    // a stride, so that neighbours in memory are not neighbours in time
                    let mut numbers = (from..).map(|i| i * 389 % calls_asked());
                    let mut next = |count| numbers.by_ref().take(count).collect::<Vec<_>>();
                    once(&next(calls_asked()));
                    barrier.wait();
                    let run = || once(&next(RUN)).as_secs_f64() * 1e9 / RUN as f64;
                    std::iter::repeat_with(run).take(RUNS).collect::<Vec<_>>()
                })
            })
            .collect();
        for run in running {
            self.runs[threads - 1].extend(run.join().unwrap());
        }
    }

    /// Counts what one call allocates, on average over all calls.
    pub(crate) fn count(&mut self) {
        let mut once = (self.make)();
        let numbers: Vec<usize> = (0..calls_asked()).collect();
        once(&numbers);
        // less what the list of the calls takes, which is there before the clock starts
        let info = allocation_counter::measure(|| {
            once(&numbers);
        });
        let made = if self.calls {
            calls_asked() * size_of::<ToolCall>()
        } else {
            0
        };
        self.allocated = info.bytes_total.saturating_sub(made as u64) / calls_asked() as u64;
    }

    pub(crate) fn median(&self, threads: usize) -> f64 {
        let mut runs = self.runs[threads - 1].clone();
        runs.sort_by(f64::total_cmp);
        runs[runs.len() / 2]
    }
}
