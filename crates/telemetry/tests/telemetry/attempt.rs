//! The span of an attempt, and what it writes into the record.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tollgate_core::{
    AttemptRecord, CacheStatus, CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput,
};
use tollgate_telemetry::{AttemptSpanLayer, CallSpanLayer, names};
use tollgate_testkit::{MockService, call, contract, tool};
use tower::{Layer, ServiceExt};

use crate::capture::{Capture, orders_eu, send, server};

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
        ("tollgate.attempt.number", "2"),
        ("tollgate.server", "orders-eu"),
        ("tollgate.delivery", "answered"),
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
        assert_eq!(seen.field("tollgate.delivery"), Some(delivery));
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
    assert_eq!(seen.field("tollgate.delivery"), Some("unknown"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_found_no_server_names_none() {
    let (record, request) = recorded();
    record.set_server(orders_eu(), "of the attempt before");
    let nobody = ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, "nobody");
    let router = MockService::sequence(vec![Err(nobody)]);
    let _ = AttemptSpanLayer::new().layer(router).oneshot(request).await;
    assert_eq!(record.attempts()[0].server, None);
}

#[tokio::test(start_paused = true)]
async fn an_observed_attempt_keeps_the_contract() {
    let _capture = Capture::start();
    contract::check(|inner| AttemptSpanLayer::new().layer(inner)).await;
}
