//! Calls without a subscriber. In a process of its own: a subscriber anywhere in the process would
//! enable the spans.

use std::sync::Arc;

use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, ServiceExt};

#[tokio::test(start_paused = true)]
async fn an_unobserved_call_gets_no_record() {
    let server = MockService::counting();
    let stack = CallSpanLayer::default().layer(AttemptSpanLayer::default().layer(server.clone()));
    let request = call(&tool("x").build(), json!({}));
    stack.oneshot(request).await.unwrap();
    assert!(server.seen()[0].record.is_none());
}

#[tokio::test(start_paused = true)]
async fn metrics_alone_request_no_decisions() {
    let metrics = Metrics::new(&opentelemetry::global::meter("test"));
    let server = MockService::counting();
    let stack = CallSpanLayer::default()
        .with_metrics(Arc::new(metrics))
        .layer(AttemptSpanLayer::default().layer(server.clone()));
    let request = call(&tool("x").build(), json!({}));
    stack.oneshot(request).await.unwrap();
    let seen = server.seen();
    let record = seen[0].record.as_ref().unwrap();
    assert!(!record.wants_decisions());
    assert_eq!(record.facts().attempts.len(), 1);
}
