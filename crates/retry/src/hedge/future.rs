//! A call that may be hedged.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    ChosenServer, Delivery, ErrorKind, HedgeStatus, ToolCall, ToolError, ToolOutput, ToolService,
};
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use super::client::Unasked;
use super::layer::Shared;

pub(super) type Output = Result<ToolOutput, ToolError>;

/// No hedge is sent sooner than this.
const MIN_DELAY: Duration = Duration::from_millis(10);

/// Runs a call, and a hedge beside it once it is slow. `server` is set when the router chooses.
pub(super) async fn hedged<S: ToolService>(
    shared: Arc<Shared>,
    first: S::Future,
    server: ChosenServer,
    service: S,
    call: ToolCall,
) -> Output {
    let began = Instant::now();
    // a failure says nothing about the tool's latency, but a timeout does; nor does a person's time
    let observe = |result: &Output| {
        let error = result.as_ref().err();
        if error.is_none_or(|error| error.kind == ErrorKind::Timeout) && !call.has_asked() {
            let latencies = &shared.latencies;
            latencies.observe(call.tool(), began.elapsed(), &shared.config);
        }
    };
    let mut first = pin!(first);
    let slow = shared.latencies.slow(call.tool());
    let early = match slow.map(|slow| slow.max(MIN_DELAY)) {
        Some(delay) => timeout(delay, &mut first).await.ok(),
        None => Some((&mut first).await),
    };
    if let Some(result) = early {
        observe(&result);
        return result;
    }
    let chosen = ChosenServer::default();
    let Some(mut hedge) = prepare(&shared, &call, &server, &chosen) else {
        let result = first.await;
        observe(&result);
        return result;
    };
    let unasked = Unasked::before(&mut hedge);
    let mut second = pin!(Unasked::run(unasked, service.oneshot(hedge)));
    // whether there is another server shows at once
    let mut ended = match poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx))).await {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    };
    if matches!(&ended, Some(Some(Err(error))) if error.delivery == Delivery::NotSent) {
        shared.stats.lock().no_server += 1;
        record(&call, Verdict::Skip, "no other server can take it", None);
    } else {
        shared.stats.lock().sent += 1;
        record(&call, Verdict::Sent, "the first is slow", Some(&chosen));
        note(&call, HedgeStatus::Sent);
    }
    let (mut first_error, mut second_error) = (None, None);
    loop {
        let (result, is_second) = match ended.take() {
            Some(result) => (result, true),
            None => tokio::select! {
                biased;
                result = &mut first, if first_error.is_none() => (Some(result), false),
                result = &mut second, if second_error.is_none() => (result, true),
            },
        };
        let Some(result) = result else {
            record(&call, Verdict::Skip, "only the first asks the client", None);
            name_server(&call, &server, "alone asks the client");
            let result = match first_error {
                Some(error) => Err(error),
                None => first.await,
            };
            observe(&result);
            return result;
        };
        if !is_second || result.is_ok() {
            // the hedge's latency is a lower bound of the first attempt's
            observe(&result);
        }
        match (result, is_second) {
            (Ok(output), true) => {
                shared.stats.lock().won += 1;
                record(&call, Verdict::Won, "it answered first", Some(&chosen));
                note(&call, HedgeStatus::Won);
                name_server(&call, &chosen, "answered before a slow attempt");
                return Ok(output);
            }
            (Ok(output), false) => {
                if second_error.is_none() {
                    name_server(&call, &server, "answered before its hedge");
                }
                return Ok(output);
            }
            (Err(error), true) => {
                if error.delivery == Delivery::NotSent {
                    shared.retry.bucket(&call).refund();
                }
                second_error = Some(error);
            }
            (Err(error), false) => first_error = Some(error),
        }
        if let (Some(first), Some(second)) = (&first_error, &second_error) {
            // `NotSent` only if both attempts are
            let is_telling = |error: &&ToolError| error.delivery != Delivery::NotSent;
            let telling = [first, second].into_iter().find(is_telling);
            return Err(telling.unwrap_or(first).clone());
        }
    }
}

/// Makes the call of the hedge, if the first attempt has a server and the budget pays.
fn prepare(
    shared: &Shared,
    call: &ToolCall,
    first: &ChosenServer,
    chosen: &ChosenServer,
) -> Option<ToolCall> {
    if call.has_asked() {
        record(call, Verdict::Skip, "its client was asked for input", None);
        return None;
    }
    let Some(server) = first.get() else {
        record(call, Verdict::Skip, "no server has the first yet", None);
        return None;
    };
    if !shared.retry.bucket(call).withdraw() {
        shared.stats.lock().no_budget += 1;
        record(call, Verdict::Skip, "the retry budget is spent", None);
        return None;
    }
    let mut hedge = call.clone();
    let attempt = hedge.attempt_mut();
    attempt.chosen = Some(chosen.clone());
    attempt.elsewhere_only = true;
    if !attempt.avoid.contains(&server) {
        attempt.avoid.push(server);
    }
    Some(hedge)
}

/// Records what the hedge came to.
fn record(call: &ToolCall, verdict: Verdict, why: &'static str, server: Option<&ChosenServer>) {
    tracing::debug!(tool = %call.tool().name(), ?verdict, why, "hedge of a slow call");
    call.decided(|| {
        let decision = Decision::new(Stage::Hedge, verdict, why);
        match server.and_then(ChosenServer::get) {
            Some(server) => decision.at(server),
            None => decision,
        }
    });
}

fn note(call: &ToolCall, status: HedgeStatus) {
    if let Some(record) = &call.record {
        record.with(|facts| facts.hedge = facts.hedge.max(status));
    }
}

/// Records the server whose answer it is: the router recorded the one it chose last.
fn name_server(call: &ToolCall, server: &ChosenServer, reason: &'static str) {
    if let (Some(record), Some(server)) = (call.record.as_ref(), server.get()) {
        record.with(|facts| facts.server = Some((server, reason)));
    }
}
