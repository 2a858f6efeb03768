//! How long a call waits for persons.

use std::time::{Duration, Instant};

/// The time in which at least one question to a person is open.
#[derive(Debug, Default, Clone, Copy)]
pub struct PersonClock {
    questions: u32,
    /// When the first of the open questions was asked.
    asked: Option<Instant>,
    /// How long persons took for the questions that are closed.
    decided: Duration,
}

impl PersonClock {
    /// Opens or closes a question. Returns `true` if it closed the last one.
    pub fn wait(&mut self, waits: bool, now: Instant) -> bool {
        if waits {
            self.questions = self.questions.saturating_add(1);
            self.asked.get_or_insert(now);
            return false;
        }
        self.questions = self.questions.saturating_sub(1);
        let is_last = self.questions == 0 && self.asked.is_some();
        if is_last {
            self.decided = self.time(now);
            self.asked = None;
        }
        is_last
    }

    /// Returns `true` while a person decides.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns the time that persons took up to now.
    #[must_use]
    pub fn time(&self, now: Instant) -> Duration {
        let open = self.asked.map(|asked| now.saturating_duration_since(asked));
        self.decided.saturating_add(open.unwrap_or_default())
    }
}
