//! Ends an attempt that takes longer than its tool's plan allows.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};
use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use tower_layer::Layer;
use tower_service::Service;

/// Puts an [`AttemptTimeout`] around a service.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct AttemptTimeoutLayer;

impl AttemptTimeoutLayer {
    /// Has nothing to set: the times come from the call.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout { inner }
    }
}

/// Ends an attempt after the attempt timeout of its tool's plan, or at the call's deadline if that
/// is sooner.
///
/// **Rule.** The time counts from when the server first keeps us waiting. If the plan's timeout
/// ends the attempt, the error is [`Timeout`](ErrorKind::Timeout); if the deadline does, it is
/// [`DeadlineExceeded`](ErrorKind::DeadlineExceeded), which is no evidence against the server.
/// Either way the delivery is unknown: the call was handed over and may still run. A call whose
/// deadline has passed on arrival is not handed over. An answer that is there when the time ends
/// is passed on.
///
/// **Readiness** is that of the inner service. **Cancellation:** a drop drops the inner call; so
/// does the end of the time. An inner service that answers at once costs no timer and, without a
/// deadline, no look at the clock.
///
/// Needs a tokio runtime with time enabled.
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
}

impl<S: ToolService> Service<ToolCall> for AttemptTimeout<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = AttemptTimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let limit = call.plan().limits.attempt_timeout;
        let deadline = call.deadline().map(Instant::from_std);
        let stage = match deadline.map(|at| (at, Instant::now())) {
            Some((at, now)) if at <= now => Stage::Late {
                error: too_late(now - at, limit),
            },
            _ => Stage::Running {
                answer: self.inner.call(call),
                timer: None,
                end: End {
                    limit,
                    deadline,
                    started: None,
                },
            },
        };
        AttemptTimeoutFuture { stage }
    }
}

pin_project! {
    /// The answer of an [`AttemptTimeout`].
    pub struct AttemptTimeoutFuture<F> {
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwn]
    enum Stage<F> {
        // the deadline had passed on arrival
        Late { error: ToolError },
        // the server has the call; the timer is made when it first keeps us waiting
        Running {
            #[pin]
            answer: F,
            #[pin]
            timer: Option<Sleep>,
            end: End,
        },
        Done,
    }
}

/// When an attempt has to end.
#[derive(Debug)]
struct End {
    limit: Duration,
    deadline: Option<Instant>,
    /// When the server first kept us waiting.
    started: Option<Instant>,
}

impl End {
    /// Returns when the time is over; never, if the clock does not reach that far.
    fn at(&self, now: Instant) -> Option<Instant> {
        match (now.checked_add(self.limit), self.deadline) {
            (Some(limit), Some(deadline)) => Some(limit.min(deadline)),
            (limit, deadline) => limit.or(deadline),
        }
    }

    /// States which of the two ended it, with both numbers.
    fn error(&self) -> ToolError {
        let limit = self.limit;
        let Some((deadline, started)) = self.deadline.zip(self.started) else {
            return timed_out(format!(
                "no answer within the attempt timeout of {limit:?} (the call has no deadline)"
            ));
        };
        let left = deadline.saturating_duration_since(started);
        if left > limit {
            return timed_out(format!(
                "no answer within the attempt timeout of {limit:?} \
                 (the call's deadline was {left:?} away)"
            ));
        }
        ToolError::new(
            ErrorKind::DeadlineExceeded,
            Delivery::Unknown,
            format!(
                "no answer before the call's deadline, {left:?} after it was sent \
                 (the attempt timeout is {limit:?})"
            ),
        )
    }
}

fn timed_out(message: String) -> ToolError {
    ToolError::new(ErrorKind::Timeout, Delivery::Unknown, message)
}

fn too_late(ago: Duration, limit: Duration) -> ToolError {
    ToolError::new(
        ErrorKind::DeadlineExceeded,
        Delivery::NotSent,
        format!(
            "the call's deadline passed {ago:?} ago; nothing was sent \
             (the attempt timeout is {limit:?})"
        ),
    )
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
                mut timer,
                end,
            } => match answer.poll(cx) {
                Poll::Ready(result) => result,
                Poll::Pending => {
                    if end.started.is_none() {
                        let now = Instant::now();
                        end.started = Some(now);
                        timer.set(end.at(now).map(sleep_until));
                    }
                    let Some(timer) = timer.as_pin_mut() else {
                        return Poll::Pending;
                    };
                    // a busy server must not use up the budget that the timer needs to be seen
                    ready!(std::pin::pin!(unconstrained(timer)).poll(cx));
                    Err(end.error())
                }
            },
            StageProj::Late { .. } | StageProj::Done => {
                return match stage.project_replace(Stage::Done) {
                    StageOwn::Late { error } => Poll::Ready(Err(error)),
                    _ => panic!("polled after it was done"),
                };
            }
        };
        stage.set(Stage::Done);
        Poll::Ready(result)
    }
}

impl<F> fmt::Debug for AttemptTimeoutFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .finish_non_exhaustive()
    }
}
