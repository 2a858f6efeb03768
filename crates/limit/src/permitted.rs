//! The future of a call that holds a permit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pin_project! {
    /// A call that holds its permit until its result is there, or until it is dropped.
    #[derive(Debug)]
    pub struct Permitted<F, P> {
        #[pin]
        inner: F,
        permit: Option<P>,
    }
}

impl<F, P> Permitted<F, P> {
    pub(crate) const fn new(inner: F, permit: Option<P>) -> Self {
        Self { inner, permit }
    }
}

impl<F: Future, P> Future for Permitted<F, P> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        // releases the permit now, not when the future is dropped
        *this.permit = None;
        Poll::Ready(result)
    }
}
