//! The failure that the caller gets when there is no further attempt.

use std::sync::Arc;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    Delivery, ErrorKind, FailedAttempt, OutcomeUnknown, RetryRule, ToolCall, ToolError,
};
use tokio::time::Instant;

use crate::RetryOutcome;
use crate::attempts::Attempts;

/// Why a call is not retried.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) outcome: RetryOutcome,
    /// Stated in the error, unless the failure and the number of attempts say it all.
    why: Option<String>,
}

impl From<RetryOutcome> for Stop {
    fn from(outcome: RetryOutcome) -> Self {
        Self { outcome, why: None }
    }
}

impl Stop {
    pub(crate) fn because(outcome: RetryOutcome, why: String) -> Self {
        let why = Some(why);
        Self { outcome, why }
    }

    /// Returns the entry for the call's trail.
    pub(crate) fn decision(&self, call: &ToolCall, error: &ToolError) -> Decision {
        let kind = error.kind;
        let reason = match (&self.why, self.outcome) {
            (Some(why), _) => format!("{kind}: {why}"),
            (None, RetryOutcome::Exhausted) => format!("{kind}: all allowed attempts were made"),
            (None, RetryOutcome::Background) => format!("{kind}: the runtime made the call itself"),
            (None, _) => match call.plan().retry {
                RetryRule::OnlyUnsent if error.delivery != Delivery::NotSent => {
                    format!("{kind}: it may have run, and must not run twice")
                }
                RetryRule::Never => format!("{kind}: such a call is never sent again"),
                _ if error.was_retried_by_peer() => format!("{kind}: the server retried it itself"),
                _ => format!("{kind} is not transient"),
            },
        };
        at_server(Decision::new(Stage::Retry, Verdict::Stop, reason), error)
    }

    /// Turns the last failure into the call's.
    pub(crate) fn fail(
        &self,
        call: &ToolCall,
        error: ToolError,
        attempts: Option<&Attempts>,
        sent: Option<Instant>,
    ) -> ToolError {
        let mut error = error;
        error.attempts = error.attempts.max(call.attempt().number);
        if let Some(attempts) = attempts {
            error = attempts.complete(error);
        }
        let why = self.why.as_ref();
        let mut notes = why.map_or_else(String::new, |why| format!("; not retried: {why}"));
        if error.delivery == Delivery::Unknown
            && may_have_an_effect(call)
            && error.outcome.is_none()
        {
            let sent_ago = sent.map(|sent| sent.elapsed()).unwrap_or_default();
            let outcome = OutcomeUnknown::new(call, &error, sent_ago);
            if !call.plan().is_retryable() && error.kind != ErrorKind::OutcomeUnknown {
                return error.into_outcome_unknown(outcome);
            }
            if let Some(verifier) = &outcome.verify_with {
                notes.push_str(&format!("; it may have run: check with `{verifier}`"));
            }
            error.outcome = Some(Arc::new(outcome));
        }
        let is_answer = error.delivery == Delivery::Answered && error.peer_delivery().is_none();
        if is_answer && error.may_have_run() && may_have_an_effect(call) {
            notes.push_str("; the call may have run");
            if let Some(verifier) = &call.tool().verifier {
                notes.push_str(&format!(": check with `{verifier}`"));
            }
            if error.history.is_empty() {
                let only = FailedAttempt::new(&error, Duration::ZERO);
                error.history = Arc::new([only]);
            }
        }
        if notes.is_empty() {
            return error;
        }
        let (kind, message) = (error.kind, format!("{}{notes}", error.message));
        error.into_kind(kind, message)
    }
}

/// Returns the entry for the call's trail about a retry.
pub(crate) fn retried(error: &ToolError, pause: Duration) -> Decision {
    let (kind, delivery) = (error.kind, error.delivery);
    let reason = match kind {
        ErrorKind::BreakerOpen => format!("{kind}: waited until the breaker admits calls"),
        _ => format!("{kind}, delivery {delivery}: transient, and safe to retry"),
    };
    let decision = Decision::new(Stage::Retry, Verdict::Retry, reason);
    at_server(decision.waited(pause), error)
}

fn at_server(decision: Decision, error: &ToolError) -> Decision {
    match &error.server {
        Some(server) => decision.at(server.clone()),
        None => decision,
    }
}

/// Returns `true` if it matters to the caller that the call may have run.
pub(crate) fn may_have_an_effect(call: &ToolCall) -> bool {
    call.plan().is_write() || !call.plan().is_retryable()
}

/// Rounds a time to milliseconds, to be shown.
pub(crate) fn rounded(time: Duration) -> Duration {
    match u64::try_from(time.as_millis()).unwrap_or(u64::MAX) {
        0 => time,
        millis => Duration::from_millis(millis),
    }
}
