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
#[derive(Debug, Default)]
struct Stopwatch {
    questions: u32,
    since: Option<Instant>,
    total: Duration,
}

impl Listener {
    pub(crate) fn new(outer: Option<Arc<dyn ProgressSink>>) -> Self {
        Self {
            outer,
            stopwatch: Mutex::default(),
        }
    }

    /// Returns how long the call waited for a person up to now.
    pub(crate) fn waited(&self) -> Duration {
        let stopwatch = self.stopwatch.lock();
        // most calls wait for no person, and read no clock
        match stopwatch.since {
            Some(_) => stopwatch.read(Instant::now()),
            None => stopwatch.total,
        }
    }
}

impl ProgressSink for Listener {
    fn report(&self, params: &[u8]) {
        if let Some(outer) = &self.outer {
            outer.report(params);
        }
    }

    fn waits_for_person(&self, waits: bool) {
        let now = Instant::now();
        self.stopwatch.lock().note(waits, now);
        if let Some(outer) = &self.outer {
            outer.waits_for_person(waits);
        }
    }
}

impl Stopwatch {
    fn note(&mut self, waits: bool, now: Instant) {
        if waits {
            self.questions = self.questions.saturating_add(1);
            self.since.get_or_insert(now);
            return;
        }
        self.questions = self.questions.saturating_sub(1);
        if self.questions == 0 {
            self.total = self.read(now);
            self.since = None;
        }
    }

    fn read(&self, now: Instant) -> Duration {
        let open = self.since.map(|since| now.saturating_duration_since(since));
        self.total.saturating_add(open.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_from_the_first_question_to_the_last_answer() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut watch = Stopwatch::default();
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
