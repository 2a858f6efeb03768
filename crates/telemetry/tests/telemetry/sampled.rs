//! Sampling: which calls get spans.

use std::sync::Arc;

use callward_core::{ToolCall, TraceContext};
use callward_telemetry::{CallSpanLayer, Sampling, names};
use tracing::Instrument;

use crate::capture::{Capture, miss, plain, send};

fn traced(sampled: bool) -> ToolCall {
    let trace = TraceContext::new(7, 7, u8::from(sampled)).unwrap();
    let mut call = plain();
    call.context_mut().trace = Some(Arc::new(trace));
    call
}

fn sampling(ratio: f64) -> CallSpanLayer {
    CallSpanLayer::default().with_sampling(Sampling::ratio(ratio).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_unsampled_call_is_marked_and_has_no_span_or_record() {
    let capture = Capture::start();
    let inner = miss();
    let mut left_out = traced(true);
    left_out.context_mut().is_left_out = true;
    for (ratio, request) in [
        (0.0, plain()),
        (0.0, traced(false)),
        (0.5, traced(false)),
        (1.0, traced(false)),
        (1.0, left_out),
    ] {
        send(&sampling(ratio), &inner, request).await.unwrap();
    }
    assert_eq!(capture.all(names::CALL_SPAN).len(), 0);
    assert_eq!(capture.all(names::ATTEMPT_SPAN).len(), 0);
    for seen in inner.seen() {
        assert!(seen.is_left_out && seen.record.is_none() && seen.attempt().watch.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_sampled_trace_is_continued_whatever_the_ratio() {
    for ratio in [0.0, 0.5, 1.0] {
        let capture = Capture::start();
        let inner = miss();
        send(&sampling(ratio), &inner, traced(true)).await.unwrap();
        capture.one(names::CALL_SPAN);
        capture.one(names::ATTEMPT_SPAN);
        assert!(!inner.seen()[0].is_left_out);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_within_a_local_span_belongs_to_its_trace() {
    let capture = Capture::start();
    let (inner, never) = (miss(), sampling(0.0));
    let sent = send(&never, &inner, plain());
    sent.instrument(tracing::info_span!("agent")).await.unwrap();
    assert_eq!(capture.one(names::CALL_SPAN).parent, Some("agent"));
}
