//! A scripted service that counts its calls.

use std::fmt;
use std::future::{Future, Ready as Answered, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolService};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tower::service_fn;
use tower_service::Service;

type Answer = Result<ToolOutput, ToolError>;

/// The answer of a [`MockService`] to its n-th call, counted from 1.
type Script = dyn Fn(ToolCall, usize) -> BoxFuture<'static, Answer> + Send + Sync;

/// A scripted service that counts its calls. Clones share everything except readiness: each clone
/// must be polled ready before each call, and a call without that panics.
#[derive(Clone)]
#[must_use]
pub struct MockService {
    shared: Arc<Shared>,
    ready: Ready,
}

/// Readiness is not cloned: a clone starts unready.
#[derive(Debug, Default)]
struct Ready {
    is: bool,
    /// Polls that were pending.
    waited: usize,
    /// Pending polls before each call.
    needs: usize,
    never: Option<ToolError>,
}

impl Clone for Ready {
    fn clone(&self) -> Self {
        Self {
            is: false,
            waited: 0,
            needs: self.needs,
            never: self.never.clone(),
        }
    }
}

struct Shared {
    script: Box<Script>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    started: AtomicUsize,
    finished: AtomicUsize,
    running: AtomicUsize,
    peak: AtomicUsize,
    seen: Mutex<Vec<ToolCall>>,
}

impl MockService {
    /// Answers each call with what `script` returns for it; the number counts calls from 1.
    pub fn new<F, Fut>(script: F) -> Self
    where
        F: Fn(ToolCall, usize) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        Self {
            shared: Arc::new(Shared {
                script: Box::new(move |call, n| Box::pin(script(call, n))),
                counts: Counts::default(),
            }),
            ready: Ready::default(),
        }
    }

    /// Is ready only after this many polls before each call.
    pub fn ready_after(mut self, polls: usize) -> Self {
        self.ready.needs = polls;
        self
    }

    /// Is never ready, with this error.
    pub fn never_ready(mut self, error: ToolError) -> Self {
        self.ready.never = Some(error);
        self
    }

    /// Answers every call with its number, so that no two answers are equal.
    pub fn counting() -> Self {
        Self::new(|_, n| ready(Ok(ToolOutput::text(n.to_string()))))
    }

    /// Answers the n-th call with the n-th result; panics when they are used up.
    pub fn sequence(results: Vec<Answer>) -> Self {
        Self::new(move |_, n| {
            let result = results.get(n - 1).cloned();
            ready(result.unwrap_or_else(|| panic!("call {n} was not expected")))
        })
    }

    /// Answers calls when the returned gate opens, with their number.
    pub fn gated() -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        let inside = gate.clone();
        let service = Self::new(move |_, n| {
            let gate = inside.clone();
            async move {
                gate.0.acquire().await.unwrap().forget();
                Ok(ToolOutput::text(n.to_string()))
            }
        });
        (service, gate)
    }

    /// Returns the number of started calls.
    pub fn started(&self) -> usize {
        self.shared.counts.started.load(Ordering::SeqCst)
    }

    /// Returns the number of finished calls.
    pub fn finished(&self) -> usize {
        self.shared.counts.finished.load(Ordering::SeqCst)
    }

    /// Returns the number of calls that were dropped before their end.
    pub fn cancelled(&self) -> usize {
        self.started() - self.finished() - self.running()
    }

    /// Returns the number of calls in flight.
    pub fn running(&self) -> usize {
        self.shared.counts.running.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent calls.
    pub fn peak(&self) -> usize {
        self.shared.counts.peak.load(Ordering::SeqCst)
    }

    /// Returns the calls in order of arrival.
    pub fn seen(&self) -> Vec<ToolCall> {
        self.shared.counts.seen.lock().clone()
    }
}

impl fmt::Debug for MockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.counts.fmt(f)
    }
}

impl Service<ToolCall> for MockService {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        if let Some(error) = &self.ready.never {
            return Poll::Ready(Err(error.clone()));
        }
        if !self.ready.is && self.ready.waited < self.ready.needs {
            self.ready.waited += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.ready.is = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready.is),
            "called without being polled ready first"
        );
        self.ready.waited = 0;
        let counts = &self.shared.counts;
        let n = counts.started.fetch_add(1, Ordering::SeqCst) + 1;
        let running = counts.running.fetch_add(1, Ordering::SeqCst) + 1;
        counts.peak.fetch_max(running, Ordering::SeqCst);
        counts.seen.lock().push(call.clone());
        let answer = (self.shared.script)(call, n);
        let running = Running(self.shared.clone());
        Box::pin(async move {
            let answer = answer.await;
            running.0.counts.finished.fetch_add(1, Ordering::SeqCst);
            answer
        })
    }
}

struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.counts.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Answers every call immediately with the same output, to measure the layers around it.
pub fn at_once(
    output: ToolOutput,
) -> impl ToolService<Future = Answered<Answer>> + Sync + fmt::Debug {
    service_fn(move |_: ToolCall| ready(Ok(output.clone())))
}

/// Ends the calls of [`MockService::gated`].
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Lets `n` calls end, current or future ones.
    pub fn open(&self, n: usize) {
        self.0.add_permits(n);
    }
}
