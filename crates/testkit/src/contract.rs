//! What every layer must keep, checked against any of them.
//!
//! Each check panics with a sentence when the layer breaks the rule. A deliberately wrong layer in
//! this crate's own tests proves that each check can fail.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolService};
use serde_json::json;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::{MockService, call, tool};

/// Runs all checks on the layer that `wrap` puts around a service.
pub async fn check<S, W>(wrap: W)
where
    W: Fn(MockService) -> S,
    S: ToolService + Sync,
    S::Future: 'static,
{
    uses_a_readied_instance(&wrap).await;
    waits_until_ready(&wrap).await;
    passes_on_that_it_is_never_ready(&wrap).await;
    passes_the_answer_on(&wrap).await;
    a_dropped_call_is_cancelled(&wrap).await;
    a_drop_at_any_poll_leaves_no_trace(&wrap).await;
    clones_work_alone(&wrap).await;
}

fn some_call() -> ToolCall {
    call(&tool("probe").build(), json!({"q": 1}))
}

/// Makes a call when the service is ready.
async fn send(service: &mut impl ToolService) -> Result<ToolOutput, ToolError> {
    service.ready().await?.call(some_call()).await
}

/// Panics with the rule if the call takes too long.
async fn in_time<T>(call: impl Future<Output = T>, rule: &str) -> T {
    let ended = timeout(PATIENCE, call).await;
    ended.unwrap_or_else(|_| panic!("{rule}"))
}

/// Calls twice through one instance: [`MockService`] panics if the layer calls an unreadied inner.
async fn uses_a_readied_instance<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let mock = MockService::counting();
    let mut service = wrap(mock.clone());
    for _ in 0..2 {
        send(&mut service).await.unwrap();
    }
    assert_eq!(
        mock.started(),
        2,
        "two calls of a tool without hints must both reach the server"
    );
}

/// Calls a service that needs several polls to be ready, again for each call.
async fn waits_until_ready<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let mock = MockService::counting().ready_after(3);
    let mut service = wrap(mock.clone());
    for _ in 0..2 {
        let rule = "waiting for readiness must end";
        in_time(send(&mut service), rule).await.unwrap();
    }
    assert_eq!(mock.started(), 2, "both calls must reach the server");
}

/// Where the layer says it, in `poll_ready` or as the answer, is its own affair.
async fn passes_on_that_it_is_never_ready<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let never = ToolError::new(ErrorKind::Internal, Delivery::NotSent, "never ready");
    let mock = MockService::counting().never_ready(never);
    let mut service = wrap(mock.clone());
    let rule = "an error of readiness must end the call";
    let answer = in_time(send(&mut service), rule).await;
    assert!(answer.is_err(), "an error of readiness must not be lost");
    assert_eq!(mock.started(), 0, "an unready service must not be called");
}

async fn passes_the_answer_on<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let raw = r#"{"content":[{"type":"x-unknown"}],"n":1e2}"#;
    let mock = MockService::sequence(vec![Ok(ToolOutput::from_json(raw).unwrap())]);
    let mut service = wrap(mock);
    let output = send(&mut service).await.unwrap();
    assert_eq!(
        &output.body()[..],
        raw.as_bytes(),
        "an answer must pass byte for byte"
    );
}

async fn a_dropped_call_is_cancelled<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let (mock, _gate) = MockService::gated();
    let mut service = wrap(mock.clone());
    service.ready().await.unwrap();
    let mut running = Box::pin(service.call(some_call()));
    poll_fn(|cx| {
        let pending = running.as_mut().poll(cx).is_pending();
        assert!(pending, "the server has not answered yet");
        Poll::Ready(())
    })
    .await;
    assert_eq!(mock.running(), 1, "a polled call must reach the server");
    drop(running);
    // a layer may let go of the call from a task of its own
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        mock.running(),
        0,
        "dropping the call must drop the inner call"
    );
    service.ready().await.unwrap();
}

/// Drops calls after each number of polls, often enough that a leaked place would be missed, and
/// then lets one come to its end.
async fn a_drop_at_any_poll_leaves_no_trace<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    for polls in 0..=LONGEST + 2 {
        let mock = MockService::new(|_, _| async {
            for _ in 0..LONGEST {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("done"))
        });
        let mut service = wrap(mock.clone());
        for _ in 0..DROPS {
            service.ready().await.unwrap();
            let mut running = Box::pin(service.call(some_call()));
            for _ in 0..polls {
                let over = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx).is_ready())).await;
                if over {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let rule = format!("calls dropped after {polls} polls must not hold up others");
        in_time(send(&mut service), &rule).await.unwrap();
        assert_eq!(mock.running(), 0, "nothing may run on after a drop");
    }
}

async fn clones_work_alone<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let mock = MockService::counting();
    let service = wrap(mock.clone());
    let mut first = service.clone();
    let mut second = service;
    first.ready().await.unwrap();
    second.ready().await.unwrap();
    let both = (first.call(some_call()), second.call(some_call()));
    both.0.await.unwrap();
    both.1.await.unwrap();
    assert_eq!(
        mock.started(),
        2,
        "clones must not hold each other's calls back"
    );
}

/// Far more than any call here takes; the clock is paused where the check is run.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// How often the server of a dropped call keeps it waiting.
const LONGEST: usize = 4;

/// More than any limit has places by default.
const DROPS: usize = 70;
