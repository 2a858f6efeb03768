//! Lets only so many calls at a server at once; the others wait in line.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tollgate_core::{BoxFuture, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use tower_layer::Layer;
use tower_service::Service;

/// Puts a [`ConcurrencyLimit`] around a service. Each service it wraps gets a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimitLayer {
    max_in_flight: usize,
    max_waiting: usize,
}

impl ConcurrencyLimitLayer {
    /// Lets this many calls run at once: at least 1, at most [`Semaphore::MAX_PERMITS`].
    /// Up to 1000 more wait.
    #[must_use]
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            max_in_flight: max_in_flight.clamp(1, Semaphore::MAX_PERMITS),
            max_waiting: 1000,
        }
    }

    /// Sets how many calls may wait; 0 refuses whatever cannot run at once. Default: 1000.
    #[must_use]
    pub const fn with_max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }
}

impl Default for ConcurrencyLimitLayer {
    /// 64 calls at once, 1000 waiting.
    fn default() -> Self {
        Self::new(64)
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimit<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S> {
        ConcurrencyLimit {
            inner,
            gate: Arc::new(Gate {
                places: Arc::new(Semaphore::new(self.max_in_flight)),
                waiting: AtomicUsize::new(0),
                limits: *self,
            }),
        }
    }
}

/// Lets only so many calls at a server at once; the others wait in line, first come, first served.
///
/// **Rule.** A call takes a place when it is first polled. If there is none it waits; if too many
/// wait already, or if its deadline passes first, it is refused with
/// [`Overloaded`](ErrorKind::Overloaded), not sent. The place is free again as soon as the answer
/// is there.
///
/// **Readiness** is that of the inner service: places are not taken in `poll_ready`, where a
/// caller that is ready and never calls would keep one. **Cancellation:** a drop leaves the line,
/// or ends the inner call and frees its place. **Clone:** clones share the limit.
///
/// Only a call that has to wait costs a box.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> ConcurrencyLimit<S> {
    /// Returns how many calls wait for a place.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting.load(Ordering::Relaxed)
    }

    /// Returns how many calls have a place.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let free = self.gate.places.available_permits();
        self.gate.limits.max_in_flight.saturating_sub(free)
    }
}

impl<S: ToolService> Service<ToolCall> for ConcurrencyLimit<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ConcurrencyLimitFuture<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        // the readied service goes with the call, a clone stays
        let clone = self.inner.clone();
        ConcurrencyLimitFuture {
            stage: Stage::Arriving {
                inner: std::mem::replace(&mut self.inner, clone),
                call,
                gate: self.gate.clone(),
            },
        }
    }
}

/// The places of one server, and who waits for them.
#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    limits: ConcurrencyLimitLayer,
}

/// One call in line, until dropped.
struct InLine(Arc<Gate>);

impl InLine {
    /// Joins the line, or returns how many are in it if it is full.
    fn join(gate: &Arc<Gate>) -> Result<Self, usize> {
        let max = gate.limits.max_waiting;
        gate.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < max).then(|| waiting + 1)
            })
            .map(|_| Self(gate.clone()))
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a place, in order of arrival, until the call's deadline.
fn wait_in_line(
    gate: &Arc<Gate>,
    call: &ToolCall,
) -> Result<BoxFuture<'static, Result<OwnedSemaphorePermit, ToolError>>, ToolError> {
    let busy = gate.limits.max_in_flight;
    let in_line = InLine::join(gate).map_err(|waiting| {
        overloaded(format!(
            "{busy} calls run and {waiting} wait, which is the limit; nothing was sent, try later"
        ))
    })?;
    let deadline = call.deadline();
    Ok(Box::pin(async move {
        let place = in_line.0.places.clone().acquire_owned();
        let place = match deadline {
            None => place.await,
            Some(deadline) => timeout_at(deadline.into(), place).await.map_err(|_| {
                overloaded(format!(
                    "the call's deadline passed while it waited for one of {busy} places; \
                     nothing was sent"
                ))
            })?,
        };
        place.map_err(|closed| overloaded("the server takes no more calls").with_source(closed))
    }))
}

fn overloaded(message: impl Into<std::borrow::Cow<'static, str>>) -> ToolError {
    ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, message)
}

pin_project! {
    /// The answer of a [`ConcurrencyLimit`].
    pub struct ConcurrencyLimitFuture<S>
    where
        S: Service<ToolCall>,
    {
        #[pin]
        stage: Stage<S, S::Future>,
    }
}

pin_project! {
    #[project = StageProj]
    #[project_replace = StageOwn]
    enum Stage<S, F> {
        // not yet polled: asks for a place first
        Arriving {
            inner: S,
            call: ToolCall,
            gate: Arc<Gate>,
        },
        // every place is taken
        InLine {
            inner: S,
            call: ToolCall,
            place: BoxFuture<'static, Result<OwnedSemaphorePermit, ToolError>>,
        },
        // the server has the call
        Running {
            #[pin]
            answer: F,
            place: OwnedSemaphorePermit,
        },
        Done,
    }
}

impl<S, F> Stage<S, F>
where
    S: Service<ToolCall, Future = F, Error = ToolError>,
{
    fn get_in_line(
        mut self: Pin<&mut Self>,
        line: BoxFuture<'static, Result<OwnedSemaphorePermit, ToolError>>,
    ) {
        if let StageOwn::Arriving { inner, call, .. } = self.as_mut().project_replace(Self::Done) {
            self.set(Self::InLine {
                inner,
                call,
                place: line,
            });
        }
    }

    fn run(mut self: Pin<&mut Self>, place: OwnedSemaphorePermit) {
        if let StageOwn::Arriving {
            mut inner, call, ..
        }
        | StageOwn::InLine {
            mut inner, call, ..
        } = self.as_mut().project_replace(Self::Done)
        {
            let answer = inner.call(call);
            self.set(Self::Running { answer, place });
        }
    }
}

impl<S: ToolService> Future for ConcurrencyLimitFuture<S> {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        let result = loop {
            match stage.as_mut().project() {
                StageProj::Arriving { call, gate, .. } => {
                    match gate.places.clone().try_acquire_owned() {
                        Ok(place) => stage.as_mut().run(place),
                        Err(_) => match wait_in_line(gate, call) {
                            Ok(line) => stage.as_mut().get_in_line(line),
                            Err(full) => break Err(full),
                        },
                    }
                }
                StageProj::InLine { place, .. } => match ready!(place.as_mut().poll(cx)) {
                    Ok(place) => stage.as_mut().run(place),
                    Err(refused) => break Err(refused),
                },
                StageProj::Running { answer, .. } => break ready!(answer.poll(cx)),
                StageProj::Done => panic!("polled after it was done"),
            }
        };
        // frees the place now, not when the future is dropped
        stage.set(Stage::Done);
        Poll::Ready(result)
    }
}

impl<S: Service<ToolCall>> fmt::Debug for ConcurrencyLimitFuture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitFuture")
            .field(
                "stage",
                &match &self.stage {
                    Stage::Arriving { .. } => "arriving",
                    Stage::InLine { .. } => "in line",
                    Stage::Running { .. } => "running",
                    Stage::Done => "done",
                },
            )
            .finish_non_exhaustive()
    }
}
