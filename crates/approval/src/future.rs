//! A call that is asked about.

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::{
    BoxFuture, CallContext, ProgressSink, ToolCall, ToolError, ToolOutput, ToolService,
};
use futures_util::future::Either;
use tokio::time::Instant;

use crate::layer::Shared;
use crate::{ApprovalError, Asked, Execution, Outcome, Request, State, answer};

type Output = Result<ToolOutput, ToolError>;

/// One call under the layer: on its way, or asked about. Dropping it leaves its request open.
pub type ApprovalFuture<F> = Either<F, BoxFuture<'static, Output>>;

/// How often the caller gets a report while it waits.
const PROGRESS: Duration = Duration::from_secs(10);

/// Runs a call if it is approved in time.
pub(crate) async fn ask<S: ToolService>(
    shared: Arc<Shared>,
    mut inner: S,
    call: ToolCall,
    reason: Cow<'static, str>,
) -> Output {
    let (began, approvals) = (Instant::now(), &shared.approvals);
    let asked = Asked::of(&call, reason)?;
    if call.round.is_some()
        && let Some(execution) = approvals.resume(&asked).await?
    {
        ready(&mut inner).await?;
        return run(inner, call, execution, began).await;
    }
    loop {
        let mut request = approvals.request(asked.clone()).await?;
        if request.state == State::Pending {
            request = hold(&shared, &call, &request, began).await?;
        }
        if request.state != State::Approved {
            return Ok(answer::of(&request, request.state));
        }
        ready(&mut inner).await?;
        return match approvals.consume(&request.id).await {
            Ok(execution) => run(inner, call, execution, began).await,
            // an equal call was faster: the grant may have another use
            Err(ApprovalError::Ended { .. }) if request.grant.is_some() => continue,
            // the same, or the time was over
            Err(ApprovalError::Ended { state, .. }) => Ok(answer::of(&request, state)),
            Err(error) => Err(error.into()),
        };
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
    let end = began + shared.approvals.config().hold;
    let sink = call.progress().map(|sink| Waits::begin(sink.clone()));
    let mut next = began;
    loop {
        next += PROGRESS;
        let until = sink.as_ref().map_or(end, |_| next.min(end));
        let request = shared.approvals.wait(&request.id, until).await?;
        if request.state != State::Pending || Instant::now() >= end {
            return Ok(request);
        }
        if let Some(Waits(sink)) = &sink {
            // the sink puts the caller's token in place of this one
            let waited = began.elapsed().as_secs();
            let report = format!(r#"{{"progressToken":0,"progress":{waited}}}"#);
            sink.report(report.as_bytes());
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
fn approved(call: &ToolCall, arguments: &str, waited: Duration) -> ToolCall {
    let arguments = Bytes::copy_from_slice(arguments.as_bytes());
    let approved = ToolCall::new(call.tool().clone(), arguments);
    let mut approved = approved.with_caller(call.caller().clone());
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
