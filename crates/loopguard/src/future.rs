//! The future of a call under the guard.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{ToolError, ToolOutput};
use pin_project_lite::pin_project;

use crate::call::Watch;

pin_project! {
    /// The result of a [`LoopGuard`](crate::LoopGuard).
    pub struct LoopGuardFuture<F> {
        // none if the guard answers
        #[pin]
        inner: Option<F>,
        answer: Option<ToolOutput>,
        watch: Option<Watch>,
    }
}

impl<F> LoopGuardFuture<F> {
    /// Of a call that is sent, or the guard's answer.
    pub(crate) fn new(inner: Result<F, ToolOutput>, watch: Option<Watch>) -> Self {
        let (inner, answer) = match inner {
            Ok(inner) => (Some(inner), None),
            Err(answer) => (None, Some(answer)),
        };
        Self {
            inner,
            answer,
            watch,
        }
    }
}

impl<F: Future<Output = Result<ToolOutput, ToolError>>> Future for LoopGuardFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(inner) = this.inner.as_pin_mut() else {
            return this
                .answer
                .take()
                .map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)));
        };
        let result = ready!(inner.poll(cx));
        if let Some(watch) = this.watch.take() {
            watch.end(&result);
        }
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for LoopGuardFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopGuardFuture").finish_non_exhaustive()
    }
}
