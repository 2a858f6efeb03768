//! What the caller gets to see when there is no further attempt.

use std::fmt;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Delivery, ErrorKind, OutcomeUnknown, RetryRule, ToolCall, ToolError};
use tokio::time::Instant;

use crate::retries::Retries;

/// Why a failure is given to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// All that are allowed were made.
    Attempts,
    /// The runtime made the call by itself.
    Background,
    /// The budget is spent.
    Budget,
    /// The retry would not be over before the deadline.
    Deadline {
        left: Duration,
        pause: Duration,
        usual: Option<Duration>,
    },
    /// The server, or a gate of our own before it, asked to be left alone for longer than is waited
    /// for.
    RetryAfter { stated: Duration, longest: Duration },
    /// The breakers of all servers are open for so long, and nobody said how long to wait.
    Open { stated: Duration },
    /// The breakers of all servers are open for so long, and the call has waited for them enough.
    StillOpen { waited: Duration, stated: Duration },
    /// The failure will not pass, or the tool must not be called again.
    Rule,
    /// Somebody else's schedule has no further pause.
    Schedule,
}

impl Reason {
    /// Says why a failure that might have passed was not retried; nothing where the failure and the
    /// number of attempts say it all.
    fn told(&self, call: &ToolCall) -> Option<String> {
        Some(match self {
            Self::Attempts | Self::Background | Self::Rule => return None,
            Self::Budget => format!(
                "the retry budget of replica set `{}` is spent",
                call.tool().set()
            ),
            Self::Deadline { left, pause, usual } => {
                let takes = usual.map(|usual| format!(" and the usual {} of a call", Told(usual)));
                format!(
                    "a pause of {}{} would not end before the call's deadline, {} away",
                    Told(*pause),
                    takes.unwrap_or_default(),
                    Told(*left)
                )
            }
            Self::RetryAfter { stated, longest } => format!(
                "it is to be left alone for {}, and at most {} are waited for",
                Told(*stated),
                Told(*longest)
            ),
            Self::Open { stated } => format!(
                "no server takes the call for {}, and it has no deadline to wait until",
                Told(*stated)
            ),
            Self::StillOpen { waited, stated } => format!(
                "no server takes the call for {}, and it has waited for {} already",
                Told(*stated),
                Told(*waited)
            ),
            Self::Schedule => "the schedule has no further pause".to_owned(),
        })
    }

    /// Writes down that the call is not sent again, and why.
    pub(crate) fn decision(&self, call: &ToolCall, error: &ToolError) -> Decision {
        let kind = error.kind();
        let reason = match self {
            Self::Attempts => format!("{kind}: all attempts that are allowed were made"),
            Self::Background => format!("{kind}: the runtime made the call by itself"),
            Self::Rule => match call.plan().retry {
                RetryRule::Safe => format!("{kind} will not pass by itself"),
                RetryRule::OnlyUnsent if error.delivery() != Delivery::NotSent => {
                    format!("{kind}: it may have run, and must not run twice")
                }
                RetryRule::OnlyUnsent => format!("{kind} will not pass by itself"),
                _ => format!("{kind}: such a call is never sent again"),
            },
            _ => {
                let why = self.told(call).unwrap_or_default();
                format!("{kind}: {why}")
            }
        };
        of_server(Decision::new(Stage::Retry, Verdict::Stop, reason), error)
    }
}

/// Writes down that a call is sent again.
pub(crate) fn retried(error: &ToolError, pause: Duration) -> Decision {
    let (kind, delivery) = (error.kind(), error.delivery());
    let reason = match kind {
        ErrorKind::BreakerOpen => {
            format!("{kind}: waited until it lets calls through, or its server is back")
        }
        _ => format!("{kind}, delivery {delivery}: it may pass, and a retry does no harm"),
    };
    of_server(
        Decision::new(Stage::Retry, Verdict::Retry, reason).waited(pause),
        error,
    )
}

fn of_server(decision: Decision, error: &ToolError) -> Decision {
    match error.server() {
        Some(server) => decision.at(server.clone()),
        None => decision,
    }
}

/// Turns the last failure into what the caller gets.
pub(crate) fn given_up(
    call: &ToolCall,
    error: ToolError,
    reason: &Reason,
    retries: Option<&Retries>,
    sent: Option<Instant>,
) -> ToolError {
    let attempts = call.attempt().number.max(error.attempts());
    let error = error.with_attempts(attempts);
    let error = match retries {
        Some(retries) => retries.tell(error),
        None => error,
    };
    let mut error = error;
    let mut told = String::new();
    if let Some(why) = reason.told(call) {
        told = format!("; not retried: {why}");
    }
    if error.delivery() == Delivery::Unknown
        && may_have_an_effect(call)
        && error.outcome().is_none()
    {
        let sent_ago = sent.map(|sent| sent.elapsed()).unwrap_or_default();
        let known = OutcomeUnknown::new(call, &error, sent_ago);
        if !call.plan().is_retryable() && error.kind() != ErrorKind::OutcomeUnknown {
            return error.into_outcome_unknown(known);
        }
        if let Some(verifier) = &known.verify_with {
            told.push_str(&format!(
                "; it may have run: check with `{verifier}` what it did"
            ));
        }
        error = error.with_outcome(known);
    }
    if told.is_empty() {
        return error;
    }
    // the kind stays; who reads only the message must still learn what failed
    let (kind, message) = (error.kind(), format!("{}{told}", error.message()));
    error.into_kind(kind, message)
}

/// Says whether it matters to the caller that a call may have run.
pub(crate) fn may_have_an_effect(call: &ToolCall) -> bool {
    call.plan().is_write() || !call.plan().is_retryable()
}

/// A time as people read it: nobody needs the nanoseconds of a pause.
struct Told(Duration);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coarse = u64::try_from(self.0.as_millis()).map(Duration::from_millis);
        let coarse = coarse
            .ok()
            .filter(|coarse| !coarse.is_zero())
            .unwrap_or(self.0);
        write!(f, "{coarse:?}")
    }
}
