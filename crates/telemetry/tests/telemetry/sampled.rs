//! Sampling: which calls get spans.

use std::sync::Arc;

use callward_core::{CacheStatus, ToolCall, ToolOutput, TraceContext};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, Sampling, names};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, ServiceExt};

use crate::capture::{Capture, send, server};

fn traced(sampled: bool) -> ToolCall {
    let trace = TraceContext::new(7, 7, sampled).unwrap();
    call(&tool("x").build(), json!({})).with_trace(Arc::new(trace))
}

#[tokio::test(start_paused = true)]
async fn an_unsampled_call_is_marked_and_has_no_span_or_record() {
    let capture = Capture::start();
    let inner = MockService::counting();
    let never = CallSpanLayer::new().with_sampling(Sampling::never());
    for request in [traced(false), call(&tool("x").build(), json!({}))] {
        let attempts = AttemptSpanLayer::new().layer(inner.clone());
        never.layer(attempts).oneshot(request).await.unwrap();
    }
    assert_eq!(capture.all(names::CALL_SPAN).len(), 0);
    assert_eq!(capture.all(names::ATTEMPT_SPAN).len(), 0);
    for seen in inner.seen() {
        assert!(seen.is_left_out() && seen.record().is_none() && seen.attempt().watch.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampled_trace_is_continued_whatever_the_ratio() {
    let capture = Capture::start();
    let miss = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("42")));
    let never = CallSpanLayer::new().with_sampling(Sampling::never());
    send(&never, &miss, traced(true)).await.unwrap();
    assert_eq!(capture.all(names::CALL_SPAN).len(), 1);
    assert_eq!(capture.all(names::ATTEMPT_SPAN).len(), 1);
    assert!(!miss.seen()[0].is_left_out());
}

#[tokio::test(start_paused = true)]
async fn a_call_within_a_local_span_belongs_to_its_trace() {
    let capture = Capture::start();
    let miss = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("42")));
    let never = CallSpanLayer::new().with_sampling(Sampling::never());
    let request = call(&tool("x").build(), json!({}));
    let around = tracing::info_span!("agent");
    tracing::Instrument::instrument(send(&never, &miss, request), around)
        .await
        .unwrap();
    assert_eq!(capture.one(names::CALL_SPAN).parent, Some("agent"));
}
