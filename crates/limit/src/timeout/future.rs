//! The future of a call under an attempt timeout.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolError, ToolOutput};
use pin_project_lite::pin_project;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

use super::bounds::{Bound, Bounds, Due};
use super::watch::ProgressWatch;

pin_project! {
    /// The result of a call under an [`AttemptTimeout`](super::AttemptTimeout).
    pub struct AttemptTimeoutFuture<F> {
        #[pin]
        inner: Option<F>,
        timer: Timer,
    }
}

/// Waits for the end of an attempt's time.
struct Timer {
    // made when the inner future is first pending; boxed, as a call that is ready at once needs
    // none
    sleep: Option<Pin<Box<Sleep>>>,
    bounds: Bounds,
    watch: Arc<ProgressWatch>,
    // a person decided at the last poll: the timer does not say when that ends
    paused: bool,
}

impl<F> AttemptTimeoutFuture<F> {
    pub(crate) const fn new(inner: F, bounds: Bounds, watch: Arc<ProgressWatch>) -> Self {
        Self {
            inner: Some(inner),
            timer: Timer {
                sleep: None,
                bounds,
                watch,
                paused: false,
            },
        }
    }
}

impl<F> Future for AttemptTimeoutFuture<F>
where
    F: Future<Output = Result<ToolOutput, ToolError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let result = match inner.poll(cx) {
            Poll::Ready(result) => {
                this.timer.record_extension(&result, cx);
                Poll::Ready(result)
            }
            Poll::Pending => this.timer.poll(cx).map(Err),
        };
        if result.is_ready() {
            // drops the call now, not with the future
            this.inner.set(None);
        }
        result
    }
}

impl Timer {
    /// Completes when the attempt is over. The sleep checks again when it fires: the server may
    /// have reported progress in between.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToolError> {
        loop {
            let sleeps = self.sleep.as_mut().is_some_and(|sleep| {
                // a busy server must not use up tokio's budget for the timer
                pin!(unconstrained(sleep.as_mut())).poll(cx).is_pending()
            });
            if sleeps && !self.paused {
                return Poll::Pending;
            }
            let now = Instant::now();
            let meter = self.watch.read(cx.waker());
            self.paused = meter.person.is_open();
            let at = match self.bounds.due(&meter, now) {
                // a retry follows, or this attempt goes on
                Due::Over(Bound::Share) if !self.bounds.ends_with_share(now) => continue,
                Due::Over(bound) => return Poll::Ready(self.bounds.error(bound, &meter, now)),
                Due::NotBefore(at) => at,
            };
            // none while a person decides without a deadline, or beyond the clock's range
            let Some(at) = at else {
                self.sleep = None;
                return Poll::Pending;
            };
            match &mut self.sleep {
                Some(sleep) if sleep.deadline() == at => return Poll::Pending,
                Some(sleep) => sleep.as_mut().reset(at),
                None => self.sleep = Some(Box::pin(sleep_until(at))),
            }
        }
    }

    /// Records that progress stretched the attempt, if it did.
    fn record_extension(&self, result: &Result<ToolOutput, ToolError>, cx: &Context<'_>) {
        // an attempt that was ready at once was not stretched
        if self.sleep.is_some() && result.is_ok() {
            let now = Instant::now();
            self.bounds.answered(&self.watch.read(cx.waker()), now);
        }
    }
}

impl<F> fmt::Debug for AttemptTimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .finish_non_exhaustive()
    }
}
