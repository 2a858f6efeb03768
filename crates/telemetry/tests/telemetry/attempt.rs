//! The span of an attempt, and its entry in the record.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    AttemptRecord, CacheStatus, CallRecord, Delivery, ErrorKind, RouteCandidate, RouteDecision,
    ServerId, ToolCall, ToolError, ToolOutput,
};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, names};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::{Layer, ServiceExt};

use crate::capture::{Capture, miss, orders_eu, plain, send, server};

const TOOK: Duration = Duration::from_millis(250);

fn candidate(server: ServerId, weight: u32, unfit: Option<&'static str>) -> RouteCandidate {
    RouteCandidate {
        server,
        weight,
        unfit,
    }
}

fn ended(error: Option<ErrorKind>, took: Duration) -> AttemptRecord {
    AttemptRecord {
        server: Some(orders_eu()),
        error,
        took,
    }
}

fn recorded() -> (Arc<CallRecord>, ToolCall) {
    let record = Arc::new(CallRecord::new());
    (record.clone(), plain().with_record(record))
}

#[tokio::test(start_paused = true)]
async fn each_ending_is_recorded_in_span_and_record() {
    let failed = |kind, delivery| Err(ToolError::new(kind, delivery, "failed"));
    let refused = failed(ErrorKind::ConnectFailed, Delivery::NotSent);
    let late = failed(ErrorKind::Timeout, Delivery::Unknown);
    let reported = Ok(ToolOutput::error_text("no"));
    for (answer, error_type, delivery) in [
        (Ok(ToolOutput::text("fine")), None, "answered"),
        (reported, Some("tool_error"), "answered"),
        (refused, Some("connect_failed"), "not_sent"),
        (late, Some("timeout"), "unknown"),
    ] {
        let kind = answer.as_ref().err().map(|error| error.kind);
        let capture = Capture::start();
        let (record, request) = recorded();
        let answers = server(CacheStatus::Miss, move |_| answer.clone());
        let _ = send(&CallSpanLayer::default(), &answers, request).await;
        let seen = capture.one(names::ATTEMPT_SPAN);
        assert_eq!(seen.field("error.type"), error_type);
        assert_eq!(seen.field("callward.delivery"), Some(delivery));
        assert_eq!(record.facts().started_attempts, 1);
        let attempt = ended(kind, TOOK);
        assert_eq!(record.facts().attempts, [attempt]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_attempt_is_recorded_as_cancelled() {
    let capture = Capture::start();
    let (record, request) = recorded();
    let mut running = Box::pin(AttemptSpanLayer::default().layer(miss()).oneshot(request));
    assert!(running.as_mut().now_or_never().is_none());
    let facts = record.facts();
    assert_eq!((facts.started_attempts, facts.attempts.len()), (1, 0));
    let took = Duration::from_millis(30);
    tokio::time::advance(took).await;
    drop(running);
    let cancelled = ended(Some(ErrorKind::Cancelled), took);
    assert_eq!(record.facts().attempts, [cancelled]);
    let seen = capture.one(names::ATTEMPT_SPAN);
    seen.assert_has(&[
        ("error.type", "cancelled"),
        ("otel.status_code", "ERROR"),
        ("callward.delivery", "unknown"),
    ]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_server_names_none() {
    let (record, request) = recorded();
    record.with(|facts| facts.server = Some((orders_eu(), "of the attempt before")));
    let none = ToolError::new(ErrorKind::NoEligibleServer, Delivery::NotSent, "none");
    let router = MockService::sequence(vec![Err(none)]);
    let _ = AttemptSpanLayer::default()
        .layer(router)
        .oneshot(request)
        .await;
    assert_eq!(record.facts().attempts[0].server, None);
}

/// Stands in for a router that asks one server, which refuses a second attempt, and then another.
fn router() -> MockService {
    MockService::new(|call: ToolCall, _| {
        let record = call.record.as_ref();
        let record = record.filter(|record| record.wants_decisions());
        let spare = ServerId::new("orders-us").unwrap();
        let mut first = RouteDecision::new(&call, "peak_ewma");
        first.reason = "peak_ewma";
        first.candidates = vec![
            candidate(orders_eu(), 50, None),
            candidate(spare.clone(), 10, Some("breaker_open")),
        ];
        first.chosen = Some(orders_eu());
        first.alternates = vec![spare.clone(), orders_eu()];
        let mut second = first.clone();
        second.reason = "fallback: first choice refused";
        second.chosen = Some(spare);
        second.alternates.clear();
        if let Some(record) = record {
            record.note_route(&Arc::new(first));
            if call.attempt().number > 1 {
                record.note_route(&Arc::new(second));
            }
        }
        std::future::ready(Ok(ToolOutput::text("42")))
    })
}

#[tokio::test(start_paused = true)]
async fn an_attempt_shows_the_routing_decision() {
    let capture = Capture::start();
    let mut request = call(&tool("x").destructive().build(), json!({}));
    let layer = CallSpanLayer::default();
    send(&layer, &router(), request.clone()).await.unwrap();
    request.attempt_mut().advance(None);
    send(&layer, &router(), request).await.unwrap();
    // a call without a record
    let alone = AttemptSpanLayer::default().layer(router());
    alone.oneshot(plain()).await.unwrap();
    let seen = capture.all(names::ATTEMPT_SPAN);
    let rule = "only healthy servers of weight 50 or more";
    let candidates = "orders-eu (50), orders-us (10, breaker_open)";
    seen[0].assert_has(&[
        ("callward.server", "orders-eu"),
        ("callward.route.strategy", "peak_ewma"),
        ("callward.route.reason", "peak_ewma"),
        ("callward.route.rule", rule),
        ("callward.route.candidates", candidates),
        ("callward.route.alternates", "orders-us, orders-eu"),
    ]);
    // an attempt that moved to another server shows that one
    assert_eq!(seen[1].field("callward.server"), Some("orders-us"));
    assert_eq!(seen[1].field("callward.route.alternates"), None);
    seen[2].assert_has(&[
        ("callward.server", "orders-eu"),
        ("callward.route.strategy", "peak_ewma"),
    ]);
}
