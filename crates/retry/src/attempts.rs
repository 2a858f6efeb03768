//! The attempts of one call so far.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, FailedAttempt, ToolError};
use tokio::time::Instant;

use crate::Schedule;
use crate::budget::Hold;

/// The attempts of one call so far, made when the first one has failed.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(crate) pauses: Box<dyn Schedule>,
    /// The token of the retry that is not yet sent.
    pub(crate) hold: Option<Hold>,
    /// The current attempt was paid for.
    pub(crate) was_paid: bool,
    failed: Vec<FailedAttempt>,
    /// The pause before the current attempt; while it lasts, its longest time.
    pause: Duration,
    /// When the current pause began, and whether it waits for an open breaker.
    pausing: Option<(Instant, bool)>,
    /// How long the call waited for open breakers so far.
    pub(crate) waited: Duration,
    /// An attempt was a load on a server.
    pub(crate) reached_a_server: bool,
}

impl Attempts {
    pub(crate) fn new(pauses: Box<dyn Schedule>) -> Self {
        Self {
            pauses,
            hold: None,
            was_paid: false,
            failed: Vec::new(),
            pause: Duration::ZERO,
            pausing: None,
            waited: Duration::ZERO,
            reached_a_server: false,
        }
    }

    /// Adds a failed attempt, followed by a pause and another attempt.
    pub(crate) fn add(&mut self, error: &ToolError, pause: Duration) {
        self.failed.push(FailedAttempt::new(error, self.pause));
        self.pause = pause;
        self.pausing = Some((Instant::now(), error.kind == ErrorKind::BreakerOpen));
        self.reached_a_server |= !is_own_refusal(error);
    }

    /// Ends the pause. Returns the token of the retry that follows.
    pub(crate) fn end_pause(&mut self) -> Option<Hold> {
        self.was_paid = self.hold.is_some();
        if let Some((began, for_breaker)) = self.pausing.take() {
            self.pause = self.pause.min(began.elapsed());
            if for_breaker {
                self.waited = self.waited.saturating_add(self.pause);
            }
        }
        self.hold.take()
    }

    /// Adds the history to the last failure, and the delivery of the whole call.
    pub(crate) fn complete(&self, mut error: ToolError) -> ToolError {
        if self.failed.is_empty() {
            return error;
        }
        let last = FailedAttempt::new(&error, self.pause);
        error.history = self.failed.iter().cloned().chain([last]).collect();
        let was_sent = |one: &FailedAttempt| one.delivery != Delivery::NotSent;
        if self.failed.iter().any(was_sent) && error.delivery == Delivery::NotSent {
            error.delivery = Delivery::Unknown;
        }
        error
    }
}

/// Returns `true` if a breaker or limit of our own refused, so that no server was asked.
pub(crate) fn is_own_refusal(error: &ToolError) -> bool {
    error.delivery == Delivery::NotSent
        && matches!(
            error.kind,
            ErrorKind::BreakerOpen | ErrorKind::Overloaded | ErrorKind::RateLimited
        )
}
