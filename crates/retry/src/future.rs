//! The future of a call that may be retried.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput, ToolService};
use pin_project_lite::pin_project;
use tower::retry::future::ResponseFuture;

use crate::RetryPolicy;

pin_project! {
    /// The answer of a [`Retry`](crate::Retry): of the last attempt.
    pub struct RetryFuture<S: ToolService> {
        #[pin]
        attempts: ResponseFuture<RetryPolicy, S, ToolCall>,
    }
}

impl<S: ToolService> RetryFuture<S> {
    pub(crate) const fn new(attempts: ResponseFuture<RetryPolicy, S, ToolCall>) -> Self {
        Self { attempts }
    }
}

impl<S: ToolService> Future for RetryFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().attempts.poll(cx)
    }
}

impl<S: ToolService> fmt::Debug for RetryFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}
