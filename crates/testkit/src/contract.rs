//! What every layer must keep, checked against any of them.
//!
//! Each check panics with a sentence when the layer breaks the rule. A deliberately wrong layer in
//! this crate's own tests proves that each check can fail.

use std::future::poll_fn;

use serde_json::json;
use tollgate_core::{ToolCall, ToolOutput, ToolService};
use tower_service::Service;

use crate::{MockService, call, tool};

/// Runs all checks on the layer that `wrap` puts around a service.
pub async fn check<S, W>(wrap: W)
where
    W: Fn(MockService) -> S,
    S: ToolService + Sync,
    S::Future: 'static,
{
    uses_a_readied_instance(&wrap).await;
    passes_the_answer_on(&wrap).await;
    a_dropped_call_is_cancelled(&wrap).await;
    clones_work_alone(&wrap).await;
}

fn some_call() -> ToolCall {
    call(&tool("probe").build(), json!({"q": 1}))
}

async fn ready<S: Service<ToolCall>>(service: &mut S) -> Result<(), S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await
}

/// Calls twice through one instance: [`MockService`] panics if the layer calls an unreadied inner.
async fn uses_a_readied_instance<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let mock = MockService::counting();
    let mut service = wrap(mock.clone());
    for _ in 0..2 {
        ready(&mut service).await.unwrap();
        service.call(some_call()).await.unwrap();
    }
    assert_eq!(
        mock.started(),
        2,
        "two calls of a tool without hints must both reach the server"
    );
}

async fn passes_the_answer_on<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let raw = r#"{"content":[{"type":"x-unknown"}],"n":1e2}"#;
    let mock = MockService::sequence(vec![Ok(ToolOutput::from_json(raw).unwrap())]);
    let mut service = wrap(mock);
    ready(&mut service).await.unwrap();
    let output = service.call(some_call()).await.unwrap();
    assert_eq!(
        &output.body()[..],
        raw.as_bytes(),
        "an answer must pass byte for byte"
    );
}

async fn a_dropped_call_is_cancelled<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let (mock, _gate) = MockService::gated();
    let mut service = wrap(mock.clone());
    ready(&mut service).await.unwrap();
    let mut running = Box::pin(service.call(some_call()));
    poll_fn(|cx| {
        let pending = running.as_mut().poll(cx).is_pending();
        assert!(pending, "the server has not answered yet");
        std::task::Poll::Ready(())
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
    ready(&mut service).await.unwrap();
}

async fn clones_work_alone<S: ToolService>(wrap: &impl Fn(MockService) -> S) {
    let mock = MockService::counting();
    let service = wrap(mock.clone());
    let mut first = service.clone();
    let mut second = service;
    ready(&mut first).await.unwrap();
    ready(&mut second).await.unwrap();
    let both = (first.call(some_call()), second.call(some_call()));
    both.0.await.unwrap();
    both.1.await.unwrap();
    assert_eq!(
        mock.started(),
        2,
        "clones must not hold each other's calls back"
    );
}
