//! The one execution that an approval is for.

use std::sync::Arc;

use callward_core::{Delivery, OutputStatus, ToolError, ToolOutput};
use tokio::runtime::Handle;

use crate::step::Step;
use crate::{Approvals, Request};

/// How an approved call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each has to be treated")]
pub enum Outcome {
    /// Its tool succeeded, or the call goes on as a task.
    Succeeded,
    /// It was answered with a failure.
    Failed,
    /// It may have run.
    Unknown,
    /// It certainly was not sent: the approval holds on.
    NotSent,
    /// Its server asks for input, and the call goes on with a further round.
    AwaitsRound,
}

impl Outcome {
    /// Returns how a call ended, by its result.
    #[must_use]
    pub fn of(result: &Result<ToolOutput, ToolError>) -> Self {
        match result {
            Ok(output) if output.status() == OutputStatus::InputRequired => Self::AwaitsRound,
            Ok(output) if output.is_error() => Self::Failed,
            Ok(_) => Self::Succeeded,
            Err(error) => {
                // the last attempt says nothing of those before it
                let attempts = error.history.iter().map(|attempt| attempt.delivery);
                let all = || attempts.clone().chain([error.delivery]);
                if all().any(|delivery| delivery == Delivery::Unknown) {
                    Self::Unknown
                } else if all().all(|delivery| delivery == Delivery::NotSent) {
                    Self::NotSent
                } else {
                    Self::Failed
                }
            }
        }
    }
}

/// An approval that is used up, and the call that it is for.
///
/// Dropped before [`sent`](Self::sent), it gives the approval back; dropped after, without an
/// [`end`](Self::end), it stores that the outcome is unknown.
#[derive(Debug)]
pub struct Execution {
    approvals: Approvals,
    request: Arc<Request>,
    /// What stands for a call that was not sent: the approval, or the round, is given back.
    unsent: Outcome,
    /// What is stored when it is dropped; `None` if the end is stored.
    on_drop: Option<Outcome>,
}

impl Execution {
    pub(crate) const fn new(approvals: Approvals, request: Arc<Request>, unsent: Outcome) -> Self {
        Self {
            approvals,
            request,
            unsent,
            on_drop: Some(unsent),
        }
    }

    /// Returns the request, with the arguments to run.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Notes that the call is sent now.
    pub fn sent(&mut self) {
        self.on_drop = Some(Outcome::Unknown);
    }

    /// Stores how the call ended, also if the caller leaves meanwhile. A store that fails now is
    /// logged: the call has its answer, and its outcome counts as unknown after a restart.
    pub async fn end(mut self, outcome: Outcome) {
        self.on_drop = None;
        let outcome = match outcome {
            Outcome::NotSent => self.unsent,
            outcome => outcome,
        };
        let stored = tokio::spawn(store(self.approvals.clone(), self.request.clone(), outcome));
        // it ends early only with the runtime
        let _ = stored.await;
    }
}

async fn store(approvals: Approvals, request: Arc<Request>, outcome: Outcome) {
    let id = &request.id;
    if let Err(error) = approvals.try_step(id, Step::End(outcome)).await {
        tracing::warn!(%error, %id, ?outcome, "the outcome of an approved call is not stored");
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        // without a runtime the process ends, and the next one stores that it is unknown
        if let (Some(outcome), Ok(runtime)) = (self.on_drop, Handle::try_current()) {
            runtime.spawn(store(self.approvals.clone(), self.request.clone(), outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use callward_core::{ErrorKind, FailedAttempt};

    use super::*;

    #[test]
    fn an_outcome_is_that_of_all_attempts() {
        use Delivery::{Answered, NotSent, Unknown};
        let error = |last: Delivery, before: &[Delivery]| {
            let make = |delivery| ToolError::new(ErrorKind::Timeout, delivery, "x");
            let mut error = make(last);
            let before = before
                .iter()
                .map(|one| FailedAttempt::new(&make(*one), Duration::ZERO));
            error.history = before.collect::<Arc<[_]>>();
            Err(error)
        };
        let output = |raw: &str| Ok(ToolOutput::from_json(raw.to_owned()).unwrap());
        for (result, outcome) in [
            (output("{}"), Outcome::Succeeded),
            (output(r#"{"isError":true}"#), Outcome::Failed),
            (
                output(r#"{"resultType":"input_required"}"#),
                Outcome::AwaitsRound,
            ),
            (output(r#"{"resultType":"task"}"#), Outcome::Succeeded),
            (error(NotSent, &[]), Outcome::NotSent),
            (error(Answered, &[]), Outcome::Failed),
            (error(Unknown, &[]), Outcome::Unknown),
            (error(NotSent, &[NotSent, NotSent]), Outcome::NotSent),
            (error(NotSent, &[Unknown, NotSent]), Outcome::Unknown),
            (error(NotSent, &[Answered]), Outcome::Failed),
        ] {
            assert_eq!(Outcome::of(&result), outcome, "{result:?}");
        }
    }
}
