//! Sampling: which calls get spans.

use std::sync::Arc;

use callward_core::{ToolCall, TraceContext};
use callward_telemetry::{CallSpanLayer, Sampling, names};
use tracing::Instrument;

use crate::capture::{Capture, miss, plain, send};

fn traced(sampled: bool) -> ToolCall {
    let trace = TraceContext::new(7, 7, u8::from(sampled)).unwrap();
    plain().with_trace(Arc::new(trace))
}

#[tokio::test(start_paused = true)]
async fn an_unsampled_call_is_marked_and_has_no_span_or_record() {
    let capture = Capture::start();
    let inner = miss();
    let never = CallSpanLayer::new().with_sampling(Sampling::never());
    for request in [traced(false), plain()] {
        send(&never, &inner, request).await.unwrap();
    }
    assert_eq!(capture.text(), "[]");
    for seen in inner.seen() {
        assert!(seen.is_left_out() && seen.record().is_none() && seen.attempt().watch.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampled_trace_is_continued_whatever_the_ratio() {
    let capture = Capture::start();
    let (inner, never) = (
        miss(),
        CallSpanLayer::new().with_sampling(Sampling::never()),
    );
    send(&never, &inner, traced(true)).await.unwrap();
    capture.one(names::CALL_SPAN);
    capture.one(names::ATTEMPT_SPAN);
    assert!(!inner.seen()[0].is_left_out());
}

#[tokio::test(start_paused = true)]
async fn a_call_within_a_local_span_belongs_to_its_trace() {
    let capture = Capture::start();
    let (inner, never) = (
        miss(),
        CallSpanLayer::new().with_sampling(Sampling::never()),
    );
    let sent = send(&never, &inner, plain());
    sent.instrument(tracing::info_span!("agent")).await.unwrap();
    assert_eq!(capture.one(names::CALL_SPAN).parent, Some("agent"));
}
