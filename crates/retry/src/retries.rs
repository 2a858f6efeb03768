//! What is known of a call that was retried, or is about to be.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, FailedAttempt, ToolError};
use tokio::time::Instant;

use crate::budget::Hold;
use crate::schedule::Running;

/// What is known of a call that was retried, or is about to be.
#[derive(Debug)]
pub(crate) struct Retries {
    pub(crate) pauses: Running,
    /// The retry that is paid for and not yet made.
    pub(crate) hold: Option<Hold>,
    /// The current attempt was paid for.
    pub(crate) was_paid: bool,
    /// The attempts before the current one.
    failed: Vec<FailedAttempt>,
    /// The pause before the current one; while it lasts, how long it may be.
    pause: Duration,
    /// When the pause that lasts began, and whether an open breaker is waited for.
    pausing: Option<(Instant, bool)>,
    /// The pauses in which it waited for an open breaker.
    waited: Duration,
    /// One of those before got past the gates of our own.
    got_out: bool,
    /// One of those before may have run.
    may_have_run: bool,
}

impl Retries {
    pub(crate) const fn new(pauses: Running) -> Self {
        Self {
            pauses,
            hold: None,
            was_paid: false,
            failed: Vec::new(),
            pause: Duration::ZERO,
            pausing: None,
            waited: Duration::ZERO,
            got_out: false,
            may_have_run: false,
        }
    }

    /// Takes note of a failed attempt that is followed by another after this pause.
    pub(crate) fn note(&mut self, error: &ToolError, pause: Duration) {
        self.failed.push(FailedAttempt::new(error, self.pause));
        self.pause = pause;
        self.pausing = Some((Instant::now(), error.kind() == ErrorKind::BreakerOpen));
        self.got_out |= !is_refusal(error);
        self.may_have_run |= error.delivery() != Delivery::NotSent;
    }

    /// Takes note that the pause is over, which a server that is back cuts short; returns the retry
    /// that is paid for.
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

    /// Says whether an attempt before the current one was load for a server.
    pub(crate) const fn got_out(&self) -> bool {
        self.got_out
    }

    /// Returns how long the call waited for open breakers so far.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }

    /// Says of the last failure what is true of the call, and adds what came before.
    pub(crate) fn tell(&self, error: ToolError) -> ToolError {
        if self.failed.is_empty() {
            return error;
        }
        let last = FailedAttempt::new(&error, self.pause);
        let history = self.failed.iter().cloned().chain([last]).collect();
        let error = error.with_history(history);
        if self.may_have_run && error.delivery() == Delivery::NotSent {
            // true of the last attempt, but not of the call
            return error.with_delivery(Delivery::Unknown);
        }
        error
    }
}

/// Says whether the server could not be reached, and it will be heard of when it can.
pub(crate) fn is_expected_back(error: &ToolError) -> bool {
    error.kind() == ErrorKind::ConnectFailed && error.reopening().is_some()
}

/// Says whether one of our own gates refused, so that no server was asked.
pub(crate) fn is_refusal(error: &ToolError) -> bool {
    error.delivery() == Delivery::NotSent
        && matches!(
            error.kind(),
            ErrorKind::BreakerOpen | ErrorKind::Overloaded | ErrorKind::RateLimited
        )
}
