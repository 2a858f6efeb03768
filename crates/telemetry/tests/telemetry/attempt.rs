//! The span of an attempt, and its entry in the record.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    AttemptRecord, CacheStatus, CallRecord, Delivery, ErrorKind, RouteCandidate, RouteDecision,
    ToolCall, ToolError, ToolOutput,
};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, names};
use callward_testkit::{MockService, call, contract, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::{Layer, ServiceExt};

use crate::capture::{Capture, orders_eu, orders_us, send, server};

const TOOK: Duration = Duration::from_millis(250);

fn recorded() -> (Arc<CallRecord>, ToolCall) {
    let record = Arc::new(CallRecord::new());
    let call = call(&tool("x").build(), json!({})).with_record(record.clone());
    (record, call)
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_a_child_of_its_call() {
    let capture = Capture::start();
    let answers = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("42")));
    let mut request = call(&tool("x").build(), json!({}));
    request.attempt_mut().advance(None);
    send(&CallSpanLayer::new(), &answers, request)
        .await
        .unwrap();
    let seen = capture.one(names::ATTEMPT_SPAN);
    assert_eq!(seen.parent, Some(names::CALL_SPAN));
    assert!(seen.closed && seen.inside == 0);
    for (name, value) in [
        ("callward.attempt.number", "2"),
        ("callward.server", "orders-eu"),
        ("callward.delivery", "answered"),
        ("duration_ms", "250.0"),
    ] {
        assert_eq!(seen.field(name), Some(value), "{seen:?}");
    }
    assert_eq!(seen.field("error.type"), None);
}

#[tokio::test(start_paused = true)]
async fn each_ending_is_recorded_in_span_and_record() {
    let error = |kind, delivery| Err(ToolError::new(kind, delivery, "failed"));
    let cases = [
        (Ok(ToolOutput::text("fine")), None, None, "answered"),
        (
            Ok(ToolOutput::error_text("no")),
            None,
            Some("tool_error"),
            "answered",
        ),
        (
            error(ErrorKind::ConnectFailed, Delivery::NotSent),
            Some(ErrorKind::ConnectFailed),
            Some("connect_failed"),
            "not_sent",
        ),
        (
            error(ErrorKind::Timeout, Delivery::Unknown),
            Some(ErrorKind::Timeout),
            Some("timeout"),
            "unknown",
        ),
    ];
    for (answer, kind, error_type, delivery) in cases {
        let capture = Capture::start();
        let (record, request) = recorded();
        let answers = server(CacheStatus::Miss, move |_| answer.clone());
        let _ = send(&CallSpanLayer::new(), &answers, request).await;
        let seen = capture.one(names::ATTEMPT_SPAN);
        assert_eq!(seen.field("error.type"), error_type);
        assert_eq!(seen.field("callward.delivery"), Some(delivery));
        assert_eq!(record.started_attempts(), 1);
        assert_eq!(
            record.attempts(),
            [AttemptRecord::new(Some(orders_eu()), kind, TOOK)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_attempt_is_recorded_as_cancelled() {
    let capture = Capture::start();
    let (record, request) = recorded();
    let slow = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("late")));
    let mut running = Box::pin(AttemptSpanLayer::new().layer(slow).oneshot(request));
    assert!(running.as_mut().now_or_never().is_none());
    assert_eq!((record.started_attempts(), record.attempts().len()), (1, 0));
    tokio::time::advance(Duration::from_millis(30)).await;
    drop(running);
    let cancelled = AttemptRecord::new(
        Some(orders_eu()),
        Some(ErrorKind::Cancelled),
        Duration::from_millis(30),
    );
    assert_eq!(record.attempts(), [cancelled]);
    let seen = capture.one(names::ATTEMPT_SPAN);
    assert_eq!(seen.field("error.type"), Some("cancelled"));
    assert_eq!(seen.field("callward.delivery"), Some("unknown"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_server_names_none() {
    let (record, request) = recorded();
    record.set_server(orders_eu(), "of the attempt before");
    let none = ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, "none");
    let router = MockService::sequence(vec![Err(none)]);
    let _ = AttemptSpanLayer::new().layer(router).oneshot(request).await;
    assert_eq!(record.attempts()[0].server, None);
}

/// Stands in for a router that asks one server, which refuses, and then another one.
fn router(call: &ToolCall) {
    let Some(record) = call.record().filter(|record| record.wants_decisions()) else {
        return;
    };
    let spare = orders_us();
    let mut first = RouteDecision::new(call, "peak_ewma");
    first.reason = "peak_ewma";
    first.candidates = vec![
        RouteCandidate::new(orders_eu(), 50, None),
        RouteCandidate::new(spare.clone(), 10, Some("breaker_open")),
    ];
    first.chosen = Some(orders_eu());
    first.alternates = vec![spare.clone(), orders_eu()];
    let mut second = first.clone();
    second.reason = "fallback: first choice refused";
    second.chosen = Some(spare);
    second.alternates.clear();
    record.note_route(&Arc::new(first));
    if call.attempt().number > 1 {
        record.note_route(&Arc::new(second));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_shows_the_routing_decision() {
    let capture = Capture::start();
    let server = MockService::new(|call: ToolCall, _| {
        router(&call);
        std::future::ready(Ok(ToolOutput::text("42")))
    });
    let mut request = call(&tool("x").destructive().build(), json!({}));
    for _ in 0..2 {
        send(&CallSpanLayer::new(), &server, request.clone())
            .await
            .unwrap();
        request.attempt_mut().advance(None);
    }
    let seen = capture.all(names::ATTEMPT_SPAN);
    for (name, value) in [
        ("callward.server", "orders-eu"),
        ("callward.route.strategy", "peak_ewma"),
        ("callward.route.reason", "peak_ewma"),
        (
            "callward.route.rule",
            "only healthy servers of weight 50 or more",
        ),
        (
            "callward.route.candidates",
            "orders-eu (50), orders-us (10, breaker_open)",
        ),
        ("callward.route.alternates", "orders-us, orders-eu"),
    ] {
        assert_eq!(seen[0].field(name), Some(value), "{seen:?}");
    }
    // an attempt that moved to another server shows that one
    assert_eq!(seen[1].field("callward.server"), Some("orders-us"));
    assert_eq!(seen[1].field("callward.route.alternates"), None);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_record_shows_the_routing_decision() {
    let capture = Capture::start();
    let server = MockService::new(|call: ToolCall, _| {
        router(&call);
        std::future::ready(Ok(ToolOutput::text("42")))
    });
    let request = call(&tool("x").build(), json!({}));
    let attempt = AttemptSpanLayer::new().layer(server);
    attempt.oneshot(request).await.unwrap();
    let seen = capture.one(names::ATTEMPT_SPAN);
    assert_eq!(seen.field("callward.server"), Some("orders-eu"));
    assert_eq!(seen.field("callward.route.strategy"), Some("peak_ewma"));
}

#[tokio::test(start_paused = true)]
async fn an_observed_attempt_keeps_the_contract() {
    let _capture = Capture::start();
    contract::check(|inner| AttemptSpanLayer::new().layer(inner)).await;
}
