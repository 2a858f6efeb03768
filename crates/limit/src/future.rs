//! The future of a call through a rate limit or a concurrency limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use callward_core::{BoxFuture, ToolError, ToolOutput};
use pin_project_lite::pin_project;

type Output = Result<ToolOutput, ToolError>;

pin_project! {
    /// The result of a call through a limit: the inner service's, or a refusal.
    ///
    /// `P` is what the call holds until it ends: its permits, if the limit has any.
    pub struct LimitFuture<F, P = ()> {
        #[pin]
        state: State<F, P>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, P> {
        Running { #[pin] inner: F, permits: P },
        // boxed, as few calls have to wait
        Queued { inner: BoxFuture<'static, Output> },
        Done,
    }
}

impl<F, P> LimitFuture<F, P> {
    pub(crate) const fn running(inner: F, permits: P) -> Self {
        Self {
            state: State::Running { inner, permits },
        }
    }

    /// Wraps a future that waits in the queue and then makes the call.
    pub(crate) fn queued(inner: impl Future<Output = Output> + Send + 'static) -> Self {
        Self {
            state: State::Queued {
                inner: Box::pin(inner),
            },
        }
    }
}

impl<F: Future<Output = Output>, P> Future for LimitFuture<F, P> {
    type Output = Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        let mut state = self.project().state;
        let result = match state.as_mut().project() {
            StateProj::Running { inner, .. } => ready!(inner.poll(cx)),
            StateProj::Queued { inner } => ready!(inner.as_mut().poll(cx)),
            StateProj::Done => return Poll::Pending,
        };
        // releases the permits now, not when the future is dropped
        state.set(State::Done);
        Poll::Ready(result)
    }
}

impl<F, P> fmt::Debug for LimitFuture<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Running { .. } => "running",
            State::Queued { .. } => "queued",
            State::Done => "done",
        };
        f.debug_struct("LimitFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
