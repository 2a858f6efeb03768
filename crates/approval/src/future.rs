//! A call that is asked about.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    Approver, BoxFuture, ConfirmOutcome, Confirmation, ProgressSink, ToolCall, ToolError,
    ToolOutput, ToolService,
};
use futures_util::future::Either;
use tokio::time::Instant;

use crate::layer::{Shared, Why};
use crate::{ApprovalError, Asked, Execution, Outcome, Request, State, answer, client};

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
    why: Why,
) -> Output {
    let (began, approvals) = (Instant::now(), &shared.approvals);
    let mut asked = Asked::of(&call, why.reason)?;
    (asked.by, asked.roles) = (shared.approver(why.by, &call)?, why.roles);
    if call.round.is_some()
        && let Some(execution) = approvals.resume(&asked).await?
    {
        ready(&mut inner).await?;
        return run(inner, call, execution, began).await;
    }
    loop {
        let mut request = approvals.request(asked.clone()).await?;
        if request.state == State::Pending {
            request = decision(&shared, &call, &request, began).await?;
        }
        if request.state != State::Approved {
            note(&call, &request, request.state);
            // the state of a round ends with the process
            let comes_again = call.takes_rounds && !approvals.is_closed();
            return Ok(match request.state {
                State::Pending if comes_again => ToolOutput::waits(),
                state => answer::of(&request, state, approvals.config()),
            });
        }
        ready(&mut inner).await?;
        match approvals.consume(&request.id).await {
            Ok(execution) => {
                note(&call, execution.request(), State::Approved);
                return run(inner, call, execution, began).await;
            }
            // an equal call was faster: the grant may have another use
            Err(ApprovalError::Ended { .. }) if request.grant.is_some() => {}
            // the same, or the time was over
            Err(ApprovalError::Ended { state, .. }) => {
                note(&call, &request, state);
                return Ok(answer::of(&request, state, approvals.config()));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for a decision: of the client, if that counts, or of an operator.
async fn decision(
    shared: &Shared,
    call: &ToolCall,
    request: &Request,
    began: Instant,
) -> Result<Arc<Request>, ToolError> {
    let approvals = &shared.approvals;
    let asked = client::of(call).filter(|_| request.asked.by == Approver::Client);
    let asked = asked.and_then(|client| Some((client, approvals.asking(&request.id)?)));
    match asked {
        Some((client, _asking)) => {
            let _waits = call.progress().map(|sink| Waits::begin(sink.clone()));
            client::ask(approvals, client, request).await
        }
        None => hold(shared, call, request, began).await,
    }
}

/// Writes into the record of a call what came of its request.
fn note(call: &ToolCall, request: &Request, state: State) {
    let Some(record) = &call.record else {
        return;
    };
    let outcome = match state {
        State::Approved => ConfirmOutcome::Approved,
        State::Denied => ConfirmOutcome::Denied,
        State::Pending => ConfirmOutcome::Waiting,
        State::Expired => ConfirmOutcome::Expired,
        State::Withdrawn => ConfirmOutcome::Withdrawn,
        _ => ConfirmOutcome::Used,
    };
    let decision = request.decision.as_ref();
    record.decided(|| {
        let id = &request.id;
        let by = decision.map(|it| format!(" by `{}` ({})", it.by.as_str(), it.channel));
        let why = format!("request {id} is {outcome}{}", by.unwrap_or_default());
        let word = if outcome == ConfirmOutcome::Approved {
            Verdict::Pass
        } else {
            Verdict::Refused
        };
        Decision::new(Stage::Confirm, word, why)
    });
    record.with(|facts| {
        facts.confirmation = Some(Arc::new(Confirmation {
            outcome,
            request: request.id.as_str().into(),
            arguments_digest: request.asked.arguments_digest.clone(),
            by: decision.map(|decision| decision.by.clone()),
            channel: decision.map(|decision| decision.channel.clone()),
        }));
    });
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
        let is_over = Instant::now() >= end || shared.approvals.is_closed();
        if request.state != State::Pending || is_over {
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
pub(crate) struct Waits(Arc<dyn ProgressSink>);

impl Waits {
    pub(crate) fn begin(sink: Arc<dyn ProgressSink>) -> Self {
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
    let approved = approved(call, &execution.request().asked.arguments, began.elapsed());
    execution.sent();
    let result = inner.call(approved).await;
    execution.end(Outcome::of(&result)).await;
    result
}

/// Returns the call with the approved arguments. The time that it waited is not its own.
fn approved(call: ToolCall, arguments: &str, waited: Duration) -> ToolCall {
    let mut approved = call.with_arguments(Bytes::copy_from_slice(arguments.as_bytes()));
    let deadline = approved.deadline;
    approved.context_mut().deadline = deadline.and_then(|deadline| deadline.checked_add(waited));
    approved
}
