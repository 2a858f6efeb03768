//! A call under the layer: on its way, or asked about.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    BoxFuture, CallContext, ProgressSink, ToolCall, ToolError, ToolOutput, ToolService,
};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::layer::Shared;
use crate::{ApprovalError, Asked, Execution, Outcome, Request, State, answer};

type Output = Result<ToolOutput, ToolError>;

/// How often the caller gets a report while it waits.
const PROGRESS: Duration = Duration::from_secs(10);

pin_project! {
    /// One call under the layer. Dropping it cancels the call, and leaves its request open.
    pub struct ApprovalFuture<F> {
        #[pin]
        state: Way<F>,
    }
}

pin_project! {
    #[project = WayProjection]
    enum Way<F> {
        Pass { #[pin] inner: F },
        Ask { asked: BoxFuture<'static, Output> },
    }
}

impl<F> ApprovalFuture<F> {
    pub(crate) const fn pass(inner: F) -> Self {
        Self {
            state: Way::Pass { inner },
        }
    }

    pub(crate) const fn ask(asked: BoxFuture<'static, Output>) -> Self {
        Self {
            state: Way::Ask { asked },
        }
    }
}

impl<F: Future<Output = Output>> Future for ApprovalFuture<F> {
    type Output = Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        match self.project().state.project() {
            WayProjection::Pass { inner } => inner.poll(cx),
            WayProjection::Ask { asked } => asked.as_mut().poll(cx),
        }
    }
}

impl<F> fmt::Debug for ApprovalFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalFuture").finish_non_exhaustive()
    }
}

/// Runs a call if it is approved in time.
pub(crate) async fn ask<S: ToolService>(
    shared: Arc<Shared>,
    mut inner: S,
    call: ToolCall,
    reason: Cow<'static, str>,
) -> Output {
    let began = Instant::now();
    let approvals = &shared.approvals;
    let asked = Asked::of(&call, reason)?;
    let most = approvals.config().argument_bytes;
    if asked.arguments.len() > most {
        return Err(answer::too_large(asked.arguments.len(), most));
    }
    if call.round.is_some()
        && let Some(execution) = approvals.resume(&asked).await?
    {
        ready(&mut inner).await?;
        return run(inner, call, execution, began).await;
    }
    let mut request = approvals.request(asked).await?;
    if request.state == State::Pending {
        request = hold(&shared, &call, &request, began).await?;
    }
    if request.state != State::Approved {
        return answer::of(&request);
    }
    ready(&mut inner).await?;
    match approvals.consume(&request.id).await {
        Ok(execution) => run(inner, call, execution, began).await,
        // another call of the same key was faster, or the time was over
        Err(ApprovalError::Ended { state, .. }) => answer::of(&Request {
            state,
            ..Request::clone(&request)
        }),
        Err(error) => Err(error.into()),
    }
}

async fn ready<S: ToolService>(inner: &mut S) -> Result<(), ToolError> {
    poll_fn(|cx| inner.poll_ready(cx)).await
}

/// Waits for a decision, and reports to the caller meanwhile.
async fn hold(
    shared: &Shared,
    call: &ToolCall,
    request: &Request,
    began: Instant,
) -> Result<Arc<Request>, ToolError> {
    let approvals = &shared.approvals;
    let end = began + approvals.config().hold;
    let mut sink = call.progress().map(|sink| Waits::begin(sink.clone()));
    let mut next = began + PROGRESS;
    loop {
        let until = if sink.is_some() { next.min(end) } else { end };
        let request = approvals.wait(&request.id, until).await?;
        if request.state != State::Pending || Instant::now() >= end {
            return Ok(request);
        }
        if let Some(Waits(sink)) = &mut sink {
            sink.report(&answer::progress(began.elapsed()));
            next += PROGRESS;
        }
    }
}

/// Notes that a call waits for a person until this is dropped.
struct Waits(Arc<dyn ProgressSink>);

impl Waits {
    fn begin(sink: Arc<dyn ProgressSink>) -> Self {
        sink.waits_for_person(true);
        Self(sink)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waits_for_person(false);
    }
}

/// Runs the approved arguments, and stores how it ends.
async fn run<S: ToolService>(
    mut inner: S,
    call: ToolCall,
    mut execution: Execution,
    began: Instant,
) -> Output {
    let approved = approved(&call, &execution.request().asked.arguments, began.elapsed());
    drop(call);
    execution.sent();
    let result = inner.call(approved).await;
    execution.end(Outcome::of(&result)).await;
    result
}

/// Returns the call with the approved arguments. The time that it waited is not its own.
fn approved(call: &ToolCall, arguments: &Arc<str>, waited: Duration) -> ToolCall {
    let arguments = Bytes::copy_from_slice(arguments.as_bytes());
    let mut approved = ToolCall::new(call.tool().clone(), arguments);
    approved = approved.with_caller(call.caller().clone());
    if let Some(progress) = call.progress() {
        approved = approved.with_progress(progress.clone());
    }
    if let Some(key) = call.idempotency_key() {
        approved = approved.with_idempotency_key(key);
    }
    let context = approved.context_mut();
    *context = CallContext::clone(call);
    let deadline = context.deadline;
    context.deadline = deadline.and_then(|deadline| deadline.checked_add(waited));
    approved
}
