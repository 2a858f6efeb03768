//! What does not fail allocates nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callward_core::{Caller, Principal, SessionId, ToolCall, ToolOutput};
use callward_loopguard::LoopGuardLayer;
use callward_testkit::{AtOnce, call, tool};
use serde_json::json;
use tower::{Layer, Service};

/// Calls once, without a runtime; the answer must be there at once.
fn answer<S>(service: &mut S, call: ToolCall) -> bool
where
    S: Service<ToolCall, Response = ToolOutput>,
{
    let answer = pin!(service.call(call)).poll(&mut Context::from_waker(Waker::noop()));
    matches!(answer, Poll::Ready(Ok(_)))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_allocates_nothing() {
    let layer = LoopGuardLayer::default();
    let mut succeeds = layer.layer(AtOnce::new(ToolOutput::text("done")));
    let mut fails = layer.layer(AtOnce::new(ToolOutput::error_text("no")));
    let act = tool("act").build();
    let session =
        |id| Arc::new(Caller::new(Principal::new("ada")).with_session(SessionId::new(id)));
    let of = |id, n| call(&act, json!({"n": n})).with_caller(session(id));
    let allocates = |service: &mut _, call: ToolCall| {
        allocation_counter::measure(|| assert!(answer(service, call))).count_total
    };
    assert_eq!(
        allocates(&mut succeeds, of("1", 1)),
        0,
        "nothing failed yet"
    );
    assert!(answer(&mut fails, of("1", 1)));
    assert_eq!(layer.stats().held, 1);
    assert_eq!(allocates(&mut succeeds, of("2", 1)), 0, "another session");
    assert_eq!(allocates(&mut succeeds, of("1", 2)), 0, "another call");
    assert_eq!(allocates(&mut succeeds, of("1", 1)), 0, "the call itself");
    assert_eq!(layer.stats().held, 0);
}
