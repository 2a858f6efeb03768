//! Rounds of a row and rounds of the service alone, in turns: what disturbs one disturbs the other.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tracing::{Dispatch, Subscriber, dispatcher};

/// Something to measure.
pub(crate) struct Subject {
    listens: Option<Dispatch>,
    run: Box<dyn FnMut(u32)>,
    end: Box<dyn FnOnce()>,
}

impl Subject {
    /// Measures a function that makes this many calls.
    pub(crate) fn new(run: impl FnMut(u32) + 'static) -> Self {
        Self {
            listens: None,
            run: Box::new(run),
            end: Box::new(|| ()),
        }
    }

    /// Sets the subscriber of its spans.
    pub(crate) fn seen_by(mut self, by: impl Subscriber + Send + Sync) -> Self {
        self.listens = Some(Dispatch::new(by));
        self
    }

    /// Sets what is left to do for the calls that were made.
    pub(crate) fn ended_by(mut self, end: impl FnOnce() + 'static) -> Self {
        self.end = Box::new(end);
        self
    }

    fn run(&mut self, calls: u32) {
        match &self.listens {
            Some(listens) => dispatcher::with_default(listens, || (self.run)(calls)),
            None => (self.run)(calls),
        }
    }

    /// Takes the nanoseconds of a round's call.
    fn round(&mut self, calls: u32) -> f64 {
        let start = now(ClockId::ThreadCPUTime);
        self.run(calls);
        since(start, ClockId::ThreadCPUTime) / f64::from(calls)
    }
}

/// What one process found: nanoseconds of processor time per call.
pub(crate) struct Found {
    /// Of the service alone.
    pub(crate) alone: f64,
    /// Above that, in the calling thread.
    pub(crate) thread: f64,
    /// Above that, in the whole process: the end, and what other threads did for the calls.
    pub(crate) process: f64,
}

impl Found {
    pub(crate) fn to_json(&self) -> Value {
        json!([self.alone, self.thread, self.process])
    }

    pub(crate) fn from_json(value: Value) -> Option<Self> {
        let [alone, thread, process] = serde_json::from_value(value).ok()?;
        Some(Self {
            alone,
            thread,
            process,
        })
    }
}

/// Measures a row beside the service alone.
pub(crate) fn beside(mut alone: Subject, mut row: Subject, calls: u32, rounds: u32) -> Found {
    let (mut of_alone, mut above) = (Vec::new(), Vec::new());
    let begun = now(ClockId::ProcessCPUTime);
    // one round before those that count: caches fill, and series are made
    let mut not_its_own = alone.round(calls);
    row.round(calls);
    for _ in 0..rounds {
        let (alone, row) = (alone.round(calls), row.round(calls));
        not_its_own += alone;
        of_alone.push(alone);
        above.push(row - alone);
    }
    (row.end)();
    let process = since(begun, ClockId::ProcessCPUTime) / f64::from(calls) - not_its_own;
    let alone = median(&mut of_alone);
    Found {
        alone,
        thread: median(&mut above),
        process: process / f64::from(rounds + 1) - alone,
    }
}

pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

fn since(start: Duration, clock: ClockId) -> f64 {
    (now(clock) - start).as_nanos() as f64
}
