//! The future of a call that may be repeated.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tollgate_core::{ToolCall, ToolError, ToolOutput, ToolService};
use tower::retry::future::ResponseFuture;

use crate::RepeatPolicy;

pin_project! {
    /// The answer of a [`Retry`](crate::Retry): of the last attempt.
    pub struct RetryFuture<S: ToolService> {
        #[pin]
        stage: Stage<S>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S: ToolService> {
        Attempts { #[pin] attempts: ResponseFuture<RepeatPolicy, S, ToolCall> },
        // a call that nobody would miss, and no budget for it
        Refused { #[pin] refusal: Ready<Result<ToolOutput, ToolError>> },
    }
}

impl<S: ToolService> RetryFuture<S> {
    pub(crate) const fn new(attempts: ResponseFuture<RepeatPolicy, S, ToolCall>) -> Self {
        Self {
            stage: Stage::Attempts { attempts },
        }
    }

    pub(crate) fn refused(refusal: ToolError) -> Self {
        let refusal = ready(Err(refusal));
        Self {
            stage: Stage::Refused { refusal },
        }
    }
}

impl<S: ToolService> Future for RetryFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProj::Attempts { attempts } => attempts.poll(cx),
            StageProj::Refused { refusal } => refusal.poll(cx),
        }
    }
}

impl<S: ToolService> fmt::Debug for RetryFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}
