//! The future of a call through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tollgate_core::{ToolError, ToolOutput};

use crate::{Permit, Verdict, judge};

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
        Admitted { #[pin] answer: F, permit: Option<Permit> },
        Refused { error: Option<ToolError> },
    }
}

impl<F> BreakerFuture<F> {
    pub(crate) const fn admitted(answer: F, permit: Permit) -> Self {
        Self {
            stage: Stage::Admitted {
                answer,
                permit: Some(permit),
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
            StageProj::Admitted { answer, permit } => {
                let result = ready!(answer.poll(cx));
                if let Some(permit) = permit.take() {
                    settle(permit, &result);
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

fn settle(permit: Permit, result: &Result<ToolOutput, ToolError>) {
    match (judge(result), result) {
        (Verdict::Success, _) => permit.succeed(),
        (Verdict::Failure, Err(error)) => permit.fail(error),
        // the place of a probe goes back
        (Verdict::Failure | Verdict::Nothing, _) => drop(permit),
    }
}
