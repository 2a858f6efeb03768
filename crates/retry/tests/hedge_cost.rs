//! What hedging costs a call that is not slow.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callward_core::{ToolCall, ToolOutput};
use callward_retry::hedge::{HedgeConfig, HedgeFuture, HedgeLayer};
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
async fn neither_a_layer_that_is_off_nor_measuring_nor_a_write_allocates() {
    let inner = AtOnce::new(ToolOutput::text("done"));
    let (read, write) = (tool("read").read_only().build(), tool("write").build());
    let allocates = |service: &mut _, call: ToolCall| {
        allocation_counter::measure(|| assert!(answer(service, call))).count_total
    };
    let mut off = HedgeLayer::off().layer(inner.clone());
    assert_eq!(allocates(&mut off, call(&read, json!({}))), 0);

    let mut on = HedgeLayer::new(HedgeConfig::default())
        .unwrap()
        .layer(inner);
    // what belongs to a tool, and the set's budget, are made once
    for tool in [&read, &write] {
        assert!(answer(&mut on, call(tool, json!({}))));
    }
    assert_eq!(allocates(&mut on, call(&read, json!({}))), 0);
    assert_eq!(allocates(&mut on, call(&write, json!({}))), 0);
}

#[test]
fn a_call_that_is_not_hedged_carries_little_more_than_without_the_layer() {
    let bare = size_of::<<AtOnce as Service<ToolCall>>::Future>();
    let more = size_of::<HedgeFuture<AtOnce>>().saturating_sub(bare);
    assert!(more <= 64, "{more} bytes");
}
