//! The future of a call through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use callward_core::{ErrorKind, Share, ToolError, ToolOutput};
use pin_project_lite::pin_project;

use crate::mark::Mark;
use crate::person::Listener;
use crate::run::Fault;
use crate::verdict::{may_be_the_tool, may_end_all};
use crate::{Permit, Verdict};

/// What decides how an outcome counts.
pub(crate) type Judge = fn(&Result<ToolOutput, ToolError>) -> Verdict;

pin_project! {
    /// The answer of a [`Breaker`](crate::Breaker): the inner one, or a refusal.
    pub struct BreakerFuture<F> {
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        // dropped in this stage, the permit counts as nothing
        Admitted { #[pin] answer: F, held: Option<Held> },
        Refused { error: Option<ToolError> },
    }
}

impl<F> BreakerFuture<F> {
    pub(crate) const fn admitted(answer: F, held: Held) -> Self {
        Self {
            stage: Stage::Admitted {
                answer,
                held: Some(held),
            },
        }
    }

    pub(crate) const fn refused(error: ToolError) -> Self {
        Self {
            stage: Stage::Refused { error: Some(error) },
        }
    }
}

impl<F> Future for BreakerFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProj::Admitted { answer, held } => {
                let result = ready!(answer.poll(cx));
                if let Some(held) = held.take() {
                    held.settle(&result);
                }
                Poll::Ready(result)
            }
            // polled again after its end it never ends: there is no second answer
            StageProj::Refused { error } => error
                .take()
                .map_or(Poll::Pending, |error| Poll::Ready(Err(error))),
        }
    }
}

impl<F> fmt::Debug for BreakerFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerFuture").finish_non_exhaustive()
    }
}

/// What is held for as long as the call runs.
pub(crate) struct Held {
    pub(crate) permit: Permit,
    pub(crate) judge: Judge,
    /// The tool that is called, where the breaker stands before more than that.
    pub(crate) tool: Option<Mark>,
    /// Who calls, if that is known.
    pub(crate) session: Option<Mark>,
    /// What may end the attempt so soon that it says more of the caller's hurry than of the server.
    pub(crate) hurry: Option<Share>,
    /// Where calls are timed: what tells how long this one waited for a person.
    pub(crate) person: Option<Arc<Listener>>,
}

impl Held {
    fn settle(mut self, result: &Result<ToolOutput, ToolError>) {
        if let Some(person) = self.person {
            self.permit.take_off(person.waited());
        }
        match ((self.judge)(result), result) {
            (Verdict::Success, _) => self.permit.succeed(),
            (Verdict::Failure, Err(error))
                if error.kind() == ErrorKind::Timeout
                    && self.hurry.as_ref().is_some_and(Share::has_ended) =>
            {
                drop(self.permit);
            }
            (Verdict::Failure, Err(error)) => {
                let fault = Fault {
                    tool: self.tool.filter(|_| may_be_the_tool(error)),
                    is_shared: may_end_all(error),
                    session: self.session,
                };
                self.permit.fail_of(fault, error);
            }
            // the place of a probe goes back
            (Verdict::Failure | Verdict::Nothing, _) => drop(self.permit),
        }
    }
}
