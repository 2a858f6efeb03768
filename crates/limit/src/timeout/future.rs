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

use super::sink::Watch;
use super::terms::{Due, Ended, Terms};

pin_project! {
    /// The answer of an [`AttemptTimeout`](super::AttemptTimeout): the inner one, or an error.
    pub struct AttemptTimeoutFuture<F> {
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        // what was due had passed on arrival
        Late { error: Option<ToolError> },
        // the server has the call; the timer is made when it first keeps us waiting
        Running {
            #[pin]
            answer: F,
            // boxed, as calls that are answered at once would carry its bytes, too
            timer: Option<Pin<Box<Sleep>>>,
            terms: Terms,
            watch: Arc<Watch>,
            // a person was waited for when last looked: the timer says nothing of when that ends
            paused: bool,
        },
    }
}

impl<F> AttemptTimeoutFuture<F> {
    pub(crate) const fn late(error: ToolError) -> Self {
        Self {
            stage: Stage::Late { error: Some(error) },
        }
    }

    pub(crate) const fn running(answer: F, terms: Terms, watch: Arc<Watch>) -> Self {
        Self {
            stage: Stage::Running {
                answer,
                timer: None,
                terms,
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
        let mut stage = self.project().stage;
        let result = match stage.as_mut().project() {
            StageProj::Running {
                answer,
                timer,
                terms,
                watch,
                paused,
            } => match answer.poll(cx) {
                Poll::Ready(result) => {
                    // an answer that was there at once was not late
                    if terms.is_told() && timer.is_some() && result.is_ok() {
                        let now = Instant::now();
                        terms.answered(&watch.read(now, cx.waker()), now);
                    }
                    Poll::Ready(result)
                }
                Poll::Pending => poll_end(timer, terms, watch, paused, cx).map(Err),
            },
            // polled again after its end it never ends: there is no second answer
            StageProj::Late { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        };
        if result.is_ready() {
            // lets go of the call now, not when the future is dropped
            stage.set(Stage::Late { error: None });
        }
        result
    }
}

/// Waits for the end of an attempt's time, by a timer that looks again when it fires: in between,
/// the server may have reported progress.
fn poll_end(
    timer: &mut Option<Pin<Box<Sleep>>>,
    terms: &mut Terms,
    watch: &Watch,
    paused: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<ToolError> {
    loop {
        let running = timer.as_mut().is_some_and(|timer| {
            // a busy server must not use up the budget that the timer needs to be seen
            pin!(unconstrained(timer.as_mut())).poll(cx).is_pending()
        });
        if running && !*paused {
            return Poll::Pending;
        }
        let now = Instant::now();
        let meter = watch.read(now, cx.waker());
        *paused = meter.is_asking();
        let at = match terms.due(&meter, now) {
            // another attempt follows, or this one goes on
            Due::Over(Ended::Share) if !terms.ends_with_share(now) => continue,
            Due::Over(ended) => return Poll::Ready(terms.error(ended, &meter, now)),
            Due::NotBefore(at) => at,
        };
        // what the clock cannot say, and a person without a deadline, need no timer
        let Some(at) = at else {
            *timer = None;
            return Poll::Pending;
        };
        match timer {
            Some(timer) if timer.deadline() == at => return Poll::Pending,
            Some(timer) => timer.as_mut().reset(at),
            None => *timer = Some(Box::pin(sleep_until(at))),
        }
    }
}

impl<F> fmt::Debug for AttemptTimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .finish_non_exhaustive()
    }
}
