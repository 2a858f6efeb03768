//! The span of a call.

use std::task::{Context, Waker};
use std::time::Duration;

use callward_core::{CacheStatus, Delivery, ErrorKind, Tool, ToolError, ToolOutput};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, names};
use callward_testkit::{MockService, call, contract, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::{Layer, Service, ServiceExt};

use crate::capture::{Capture, Meters, Seen, miss, noting, plain, send, server};

/// Checks that a span has the fields that are known before the call, these, and no others.
fn assert_fields(seen: &Seen, tool: &Tool, expected: &[(&str, &str)]) {
    let (name, plan) = (tool.name().as_str(), tool.plan());
    let (shown, in_line) = (format!("execute_tool {name}"), plan.in_line().to_string());
    let known = [
        ("otel.name", &*shown),
        ("otel.kind", "internal"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", name),
        ("gen_ai.tool.type", "function"),
        ("callward.plan", &in_line),
        ("callward.plan.reason", &plan.reason),
        ("callward.server_set", "test"),
    ];
    let all = [&known, expected].concat();
    seen.assert_has(&all);
    // decisions have their own tests
    let decisions = seen.field(names::DECISIONS).unwrap();
    assert!(decisions.starts_with("plan:"), "{decisions}");
    assert_eq!(seen.fields.len(), all.len() + 1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_has_exactly_the_fields_of_what_happened() {
    let capture = Capture::start();
    let layer = CallSpanLayer::default();
    let read = tool("read_order").read_only().build();
    let request = call(&read, json!({}));
    send(&layer, &miss(), request).await.unwrap();
    let hit = noting(|facts| facts.cache = CacheStatus::Hit);
    let delete = tool("delete").destructive().build();
    let request = call(&delete, json!({}));
    layer.layer(hit).oneshot(request).await.unwrap();

    let [ran, hit] = &capture.all(names::CALL_SPAN)[..] else {
        panic!("two spans")
    };
    assert_eq!((ran.target, ran.closed), ("callward", true));
    let expected = [
        ("callward.annotations", "[read-only]"),
        ("callward.effect", "read_only"),
        ("callward.confirm", "skip"),
        ("callward.cache", "miss"),
        ("callward.attempts", "1"),
        ("callward.server", "orders-eu"),
        ("callward.route.reason", "round robin"),
        ("duration_ms", "250.0"),
    ];
    assert_fields(ran, &read, &expected);
    let expected = [
        ("callward.annotations", "[DESTRUCTIVE]"),
        ("callward.effect", "destructive"),
        ("callward.confirm", "ask"),
        ("callward.cache", "hit"),
        ("callward.attempts", "0"),
        ("duration_ms", "0.0"),
    ];
    assert_fields(hit, &delete, &expected);
}

#[tokio::test(start_paused = true)]
async fn the_server_of_an_error_is_recorded() {
    let capture = Capture::start();
    let lost = ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, "gone")
        .with_server("alone".parse().unwrap());
    let failing = MockService::sequence(vec![Err(lost)]);
    let _ = CallSpanLayer::default()
        .layer(failing)
        .oneshot(plain())
        .await;
    let seen = capture.one(names::CALL_SPAN);
    assert_eq!(seen.field("callward.server"), Some("alone"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_recorded_as_cancelled() {
    let capture = Capture::start();
    let (layer, slow) = (CallSpanLayer::default(), miss());
    let mut running = Box::pin(send(&layer, &slow, plain()));
    assert!(running.as_mut().now_or_never().is_none());
    tokio::time::advance(Duration::from_millis(40)).await;
    drop(running);
    let seen = capture.one(names::CALL_SPAN);
    assert!(seen.closed);
    seen.assert_has(&[
        ("error.type", "cancelled"),
        ("otel.status_code", "ERROR"),
        ("duration_ms", "40.0"),
        ("callward.attempts", "1"),
        ("callward.server", "orders-eu"),
    ]);
}

#[tokio::test(start_paused = true)]
async fn the_span_is_current_while_the_call_is_polled_and_not_between() {
    let capture = Capture::start();
    let slow = MockService::new(|_, _| async {
        for _ in 0..3 {
            let current = tracing::Span::current();
            assert_eq!(current.metadata().map(|m| m.name()), Some("execute_tool"));
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::text("done"))
    });
    let mut service = CallSpanLayer::default().layer(slow);
    let mut start = || {
        let _ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
        Box::pin(service.call(plain()))
    };
    let (mut one, mut other) = (start(), start());
    for _ in 0..3 {
        for running in [&mut one, &mut other] {
            assert!(running.as_mut().now_or_never().is_none());
            assert!(tracing::Span::current().is_none());
            assert!(capture.all(names::CALL_SPAN).iter().all(|s| s.inside == 0));
        }
    }
    one.await.unwrap();
    other.await.unwrap();
    // once for `call`, four times for the polls
    let seen = capture.all(names::CALL_SPAN);
    let entered: Vec<_> = seen.iter().map(|s| s.entered).collect();
    assert_eq!(entered, [5, 5]);
}

#[tokio::test(start_paused = true)]
async fn arguments_results_and_messages_are_not_recorded() {
    let capture = Capture::start();
    let refused = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, "secret");
    for answer in [
        Ok(ToolOutput::text("secret")),
        Ok(ToolOutput::error_text("secret")),
        Err(refused),
    ] {
        let request = call(&tool("x").build(), json!({"secret": "secret"}));
        let answers = server(CacheStatus::Miss, move |_| answer.clone());
        let _ = send(&CallSpanLayer::default(), &answers, request).await;
    }
    assert_eq!(capture.all(names::CALL_SPAN).len(), 3);
    assert!(!capture.text().contains("secret"), "{}", capture.text());
}

#[tokio::test(start_paused = true)]
async fn observed_and_measured_layers_keep_the_contract() {
    let measured = CallSpanLayer::default().with_metrics(Meters::start().metrics);
    contract::check(|inner| measured.layer(inner)).await;
    let _capture = Capture::start();
    contract::check(|inner| CallSpanLayer::default().layer(inner)).await;
    contract::check(|inner| AttemptSpanLayer::default().layer(inner)).await;
}
