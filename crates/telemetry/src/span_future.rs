//! The future of a call or an attempt, which reports its end.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{ToolError, ToolOutput};
use pin_project_lite::pin_project;
use tracing::Span;

use crate::error_type::Ending;

/// A call or an attempt whose end is written down.
pub(crate) trait Observed: Send + Sync + 'static {
    fn span(&self) -> &Span;

    /// Writes the end; called once.
    fn ended(&self, ending: Ending<'_>);
}

pin_project! {
    /// The answer of a [`CallSpan`](crate::CallSpan) or an [`AttemptSpan`](crate::AttemptSpan).
    pub struct SpanFuture<F> {
        // dropped first, so that the record has what its drop writes
        #[pin]
        answer: F,
        guard: Guard,
    }
}

impl<F> SpanFuture<F> {
    pub(crate) const fn unobserved(answer: F) -> Self {
        Self {
            answer,
            guard: Guard(None),
        }
    }

    /// Calls `send` inside the span: layers may work before the first poll.
    pub(crate) fn observed(observed: impl Observed, send: impl FnOnce() -> F) -> Self {
        Self {
            answer: observed.span().in_scope(send),
            guard: Guard(Some(Box::new(observed))),
        }
    }
}

/// Reports the end; dropped before, a cancellation.
struct Guard(Option<Box<dyn Observed>>);

impl Guard {
    fn end(&mut self, ending: Ending<'_>) {
        if let Some(observed) = self.0.take() {
            observed.ended(ending);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl<F> Future for SpanFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(observed) = &this.guard.0 else {
            return this.answer.poll(cx);
        };
        let result = ready!(observed.span().in_scope(|| this.answer.poll(cx)));
        this.guard.end(Some(&result));
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for SpanFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanFuture")
            .field("is_observed", &self.guard.0.is_some())
            .finish_non_exhaustive()
    }
}
