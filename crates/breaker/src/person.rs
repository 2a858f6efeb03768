//! How long a call waited for a person.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ProgressSink;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Notes when a call waits for a person, and forwards everything to the sink it had before.
pub(crate) struct Listener {
    outer: Option<Arc<dyn ProgressSink>>,
    stopwatch: Mutex<Stopwatch>,
}

/// Runs while at least one question is open.
struct Stopwatch {
    questions: u32,
    /// When a question was opened or closed last.
    last: Instant,
    /// The time until then.
    total: Duration,
}

impl Listener {
    pub(crate) fn new(outer: Option<Arc<dyn ProgressSink>>) -> Self {
        let stopwatch = Mutex::new(Stopwatch::new(Instant::now()));
        Self { outer, stopwatch }
    }

    /// Returns how long the call waited for a person up to now.
    pub(crate) fn waited(&self) -> Duration {
        self.stopwatch.lock().read(Instant::now())
    }
}

impl ProgressSink for Listener {
    fn report(&self, params: &[u8]) {
        if let Some(outer) = &self.outer {
            outer.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        self.stopwatch.lock().note(waits, Instant::now());
        if let Some(outer) = &self.outer {
            outer.waits_for_person(waits);
        }
    }
}

impl Stopwatch {
    const fn new(now: Instant) -> Self {
        Self {
            questions: 0,
            last: now,
            total: Duration::ZERO,
        }
    }

    fn note(&mut self, waits: bool, now: Instant) {
        (self.total, self.last) = (self.read(now), now);
        self.questions = match waits {
            true => self.questions.saturating_add(1),
            false => self.questions.saturating_sub(1),
        };
    }

    fn read(&self, now: Instant) -> Duration {
        match self.questions {
            0 => self.total,
            _ => self.total + now.saturating_duration_since(self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_from_the_first_question_to_the_last_answer() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut watch = Stopwatch::new(start);
        let mut read_after = |waits, secs| {
            watch.note(waits, at(secs));
            watch.read(at(secs + 1)).as_secs()
        };
        assert_eq!(read_after(false, 0), 0, "an answer to nothing");
        assert_eq!(read_after(true, 10), 1);
        assert_eq!(read_after(true, 20), 11);
        assert_eq!(read_after(false, 30), 21, "one question is still open");
        assert_eq!(read_after(false, 40), 30);
        assert_eq!(read_after(true, 50), 31);
        assert_eq!(read_after(false, 60), 40);
    }
}
