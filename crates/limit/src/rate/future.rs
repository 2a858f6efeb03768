//! The future of a call through a rate limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tower_service::Service;

pin_project! {
    /// The answer of a [`RateLimit`](super::RateLimit): the inner one, or a refusal.
    pub struct RateLimitFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S, S::Future>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwn]
    enum Stage<S, F> {
        // its cells are spent
        Passing { #[pin] answer: F },
        // in line for one; gives the call back when it has them all
        Waiting { inner: S, turn: BoxFuture<'static, Result<ToolCall, ToolError>> },
        Done,
    }
}

impl<S: Service<ToolCall>> RateLimitFuture<S> {
    pub(crate) const fn passing(answer: S::Future) -> Self {
        Self {
            stage: Stage::Passing { answer },
        }
    }

    pub(crate) fn waiting(
        inner: S,
        turn: impl Future<Output = Result<ToolCall, ToolError>> + Send + 'static,
    ) -> Self {
        Self {
            stage: Stage::Waiting {
                inner,
                turn: Box::pin(turn),
            },
        }
    }
}

impl<S: ToolService> Future for RateLimitFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        loop {
            match stage.as_mut().project() {
                StageProj::Passing { answer } => return answer.poll(cx),
                StageProj::Waiting { turn, .. } => {
                    let turn = ready!(turn.as_mut().poll(cx));
                    let StageOwn::Waiting { mut inner, .. } =
                        stage.as_mut().project_replace(Stage::Done)
                    else {
                        return Poll::Pending;
                    };
                    let answer = inner.call(turn?);
                    stage.set(Stage::Passing { answer });
                }
                // refused, and polled again: there is no second answer
                StageProj::Done => return Poll::Pending,
            }
        }
    }
}

impl<S: Service<ToolCall>> fmt::Debug for RateLimitFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Passing { .. } => "passing",
            Stage::Waiting { .. } => "waiting",
            Stage::Done => "done",
        };
        f.debug_struct("RateLimitFuture")
            .field("stage", &stage)
            .finish_non_exhaustive()
    }
}
