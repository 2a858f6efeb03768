//! The span of a call.

use std::sync::Arc;

use callward_core::{
    CacheStatus, CallRecord, Delivery, ErrorKind, HedgeStatus, ToolError, ToolOutput,
};
use callward_telemetry::{CallSpanLayer, names};
use callward_testkit::{MockService, call, contract, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::{Layer, Service, ServiceExt};

use crate::capture::{Capture, Seen, send, server};

fn assert_fields(seen: &Seen, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(seen.field(name), Some(*value), "{name} of {seen:?}");
    }
    let listed: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
    // decisions have their own tests
    assert!(
        seen.field(names::DECISIONS)
            .is_some_and(|line| line.starts_with("plan:"))
    );
    let known = |name: &&str| listed.contains(name) || *name == names::DECISIONS;
    let extra: Vec<_> = seen.fields.keys().filter(|name| !known(name)).collect();
    assert!(extra.is_empty(), "{extra:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ran_has_every_field() {
    let capture = Capture::start();
    let miss = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("42")));
    let read = tool("read_order").read_only().build();
    send(&CallSpanLayer::new(), &miss, call(&read, json!({})))
        .await
        .unwrap();
    let seen = capture.one(names::CALL_SPAN);
    assert_eq!((seen.target, seen.closed), ("callward", true));
    assert_fields(
        &seen,
        &[
            ("otel.name", "execute_tool read_order"),
            ("otel.kind", "internal"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "read_order"),
            ("gen_ai.tool.type", "function"),
            ("callward.annotations", "[read-only]"),
            ("callward.plan", &read.plan().in_line().to_string()),
            ("callward.server_set", "test"),
            ("callward.effect", "read_only"),
            ("callward.confirm", "skip"),
            ("callward.plan.reason", &read.plan().reason),
            ("callward.cache", "miss"),
            ("callward.attempts", "1"),
            ("callward.server", "orders-eu"),
            ("callward.route.reason", "round robin"),
            ("duration_ms", "250.0"),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_hit_has_no_server_and_no_attempt() {
    let capture = Capture::start();
    let hit = MockService::new(|call, _| {
        if let Some(record) = call.record() {
            record.set_cache(CacheStatus::Hit);
        }
        std::future::ready(Ok(ToolOutput::text("42")))
    });
    let delete = tool("delete").destructive().build();
    let request = call(&delete, json!({}));
    let layer = CallSpanLayer::new();
    layer.layer(hit).oneshot(request).await.unwrap();
    assert_fields(
        &capture.one(names::CALL_SPAN),
        &[
            ("otel.name", "execute_tool delete"),
            ("otel.kind", "internal"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "delete"),
            ("gen_ai.tool.type", "function"),
            ("callward.annotations", "[DESTRUCTIVE]"),
            ("callward.plan", &delete.plan().in_line().to_string()),
            ("callward.server_set", "test"),
            ("callward.effect", "destructive"),
            ("callward.confirm", "ask"),
            ("callward.plan.reason", &delete.plan().reason),
            ("callward.cache", "hit"),
            ("callward.attempts", "0"),
            ("duration_ms", "0.0"),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_bypassed_cache_is_recorded_with_its_reason() {
    let capture = Capture::start();
    let past = MockService::new(|call, _| {
        if let Some(record) = call.record() {
            record.set_cache_bypass("writing");
        }
        std::future::ready(Ok(ToolOutput::text("42")))
    });
    let request = call(&tool("get").read_only().build(), json!({}));
    let layer = CallSpanLayer::new();
    layer.layer(past).oneshot(request).await.unwrap();
    let seen = capture.one(names::CALL_SPAN);
    assert_eq!(seen.field("callward.cache"), Some("bypass"));
    assert_eq!(seen.field("callward.cache.bypass_reason"), Some("writing"));
}

#[tokio::test(start_paused = true)]
async fn hedge_and_loop_guard_are_recorded_if_they_acted() {
    let seen = async |note: fn(&CallRecord)| {
        let capture = Capture::start();
        let inner = MockService::new(move |call, _| {
            if let Some(record) = call.record() {
                note(record);
            }
            std::future::ready(Ok(ToolOutput::text("42")))
        });
        let request = call(&tool("get").read_only().build(), json!({}));
        let layer = CallSpanLayer::new();
        layer.layer(inner).oneshot(request).await.unwrap();
        let span = capture.one(names::CALL_SPAN);
        let of = |field| span.field(field).map(str::to_owned);
        (of("callward.hedge"), of("callward.guarded"))
    };
    assert_eq!(seen(|_| {}).await, (None, None));
    let hedged = seen(|record| record.note_hedge(HedgeStatus::Won)).await;
    assert_eq!(hedged, (Some("won".to_owned()), None));
    let guarded = seen(CallRecord::note_guarded).await;
    assert_eq!(guarded, (None, Some("true".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_recorded_as_its_error_type() {
    let timeout = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow");
    let fault = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "no").with_code(-32603);
    let cases = [
        (Err(timeout), "timeout"),
        (Err(fault), "-32603"),
        (Ok(ToolOutput::error_text("no such order")), "tool_error"),
    ];
    for (answer, word) in cases {
        let capture = Capture::start();
        let failing = server(CacheStatus::Invalidated, move |_| answer.clone());
        let _ = send(
            &CallSpanLayer::new(),
            &failing,
            call(&tool("x").build(), json!({})),
        )
        .await;
        let seen = capture.one(names::CALL_SPAN);
        assert_eq!(seen.field("error.type"), Some(word));
        assert_eq!(seen.field("callward.cache"), Some("invalidated"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_of_an_error_is_recorded() {
    let capture = Capture::start();
    let lost = ToolError::new(ErrorKind::ConnectionLost, Delivery::Unknown, "gone")
        .with_server("alone".parse().unwrap());
    let failing = MockService::sequence(vec![Err(lost)]);
    let request = call(&tool("x").build(), json!({}));
    let _ = CallSpanLayer::new().layer(failing).oneshot(request).await;
    let seen = capture.one(names::CALL_SPAN);
    assert_eq!(seen.field("callward.server"), Some("alone"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_recorded_as_cancelled() {
    let capture = Capture::start();
    let slow = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("late")));
    let layer = CallSpanLayer::new();
    let request = call(&tool("x").build(), json!({}));
    let mut running = Box::pin(send(&layer, &slow, request));
    assert!(running.as_mut().now_or_never().is_none());
    tokio::time::advance(std::time::Duration::from_millis(40)).await;
    drop(running);
    let seen = capture.one(names::CALL_SPAN);
    assert!(seen.closed);
    for (name, value) in [
        ("error.type", "cancelled"),
        ("duration_ms", "40.0"),
        ("callward.attempts", "1"),
        ("callward.server", "orders-eu"),
    ] {
        assert_eq!(seen.field(name), Some(value));
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_there_already_is_used() {
    let _capture = Capture::start();
    let record = Arc::new(CallRecord::new());
    let hit = server(CacheStatus::Hit, |_| Ok(ToolOutput::text("42")));
    let request = call(&tool("x").build(), json!({})).with_record(record.clone());
    send(&CallSpanLayer::new(), &hit, request).await.unwrap();
    assert_eq!(record.cache(), CacheStatus::Hit);
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
    let mut service = CallSpanLayer::new().layer(slow);
    let mut start = || {
        let _ready =
            service.poll_ready(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        Box::pin(service.call(call(&tool("x").build(), json!({}))))
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
    let entered: Vec<_> = capture
        .all(names::CALL_SPAN)
        .iter()
        .map(|s| s.entered)
        .collect();
    assert_eq!(entered, [5, 5]);
}

#[tokio::test(start_paused = true)]
async fn arguments_and_results_are_not_recorded() {
    let capture = Capture::start();
    let answers = server(CacheStatus::Miss, |n| match n {
        1 => Ok(ToolOutput::text("classified")),
        2 => Ok(ToolOutput::error_text("classified")),
        _ => Err(ToolError::new(
            ErrorKind::InvalidCall,
            Delivery::Answered,
            "classified",
        )),
    });
    for _ in 0..3 {
        let request = call(&tool("x").build(), json!({"password": "hunter2"}));
        let _ = send(&CallSpanLayer::new(), &answers, request).await;
    }
    assert_eq!(capture.all(names::CALL_SPAN).len(), 3);
    let text = capture.text();
    for secret in ["password", "hunter2", "classified"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observed_call_keeps_the_contract() {
    let _capture = Capture::start();
    contract::check(|inner| CallSpanLayer::new().layer(inner)).await;
}
