//! The future of a call that holds its permits.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::permits::Held;

pin_project! {
    /// A call that holds its permits until its result is there.
    pub struct Permitted<F> {
        #[pin]
        inner: F,
        held: Option<Held>,
    }
}

impl<F> Permitted<F> {
    pub(super) const fn new(inner: F, held: Held) -> Self {
        let held = Some(held);
        Self { inner, held }
    }
}

impl<F: Future> Future for Permitted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        // releases the permits now, not when the future is dropped
        *this.held = None;
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for Permitted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permitted").finish_non_exhaustive()
    }
}
