//! How long a call waited for a person.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ProgressSink;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Measures how long a call waits for a person, and forwards everything to the sink it had before.
pub(crate) struct Listener {
    outer: Option<Arc<dyn ProgressSink>>,
    waits: Mutex<Waits>,
}

/// The time in which at least one question was open.
struct Waits {
    questions: u32,
    /// When a question was opened or closed last.
    last: Instant,
    /// The time until then.
    total: Duration,
}

impl Listener {
    pub(crate) fn new(outer: Option<Arc<dyn ProgressSink>>) -> Self {
        let waits = Waits {
            questions: 0,
            last: Instant::now(),
            total: Duration::ZERO,
        };
        Self {
            outer,
            waits: Mutex::new(waits),
        }
    }

    /// Returns how long the call waited for a person up to now.
    pub(crate) fn waited(&self) -> Duration {
        self.waits.lock().time()
    }
}

impl Waits {
    fn time(&self) -> Duration {
        match self.questions {
            0 => self.total,
            _ => self.total + self.last.elapsed(),
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
        let mut state = self.waits.lock();
        (state.total, state.last) = (state.time(), Instant::now());
        state.questions = match waits {
            true => state.questions.saturating_add(1),
            false => state.questions.saturating_sub(1),
        };
        drop(state);
        if let Some(outer) = &self.outer {
            outer.waits_for_person(waits);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_runs_from_the_first_question_to_the_last_answer() {
        let listener = Listener::new(None);
        // an answer to nothing; two questions, of which one stays open; and another
        let steps = [false, true, true, false, false, true, false];
        let waited = [0, 0, 10, 20, 30, 30, 40];
        for (waits, waited) in steps.into_iter().zip(waited) {
            listener.waits_for_person(waits);
            assert_eq!(listener.waited(), Duration::from_secs(waited));
            advance(Duration::from_secs(10)).await;
        }
        assert_eq!(listener.waited(), Duration::from_secs(40));
    }
}
