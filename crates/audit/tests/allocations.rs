//! What leaves no record allocates nothing.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callward_audit::{AuditConfig, AuditLayer, AuditLog};
use callward_core::ToolOutput;
use callward_testkit::{at_once, call, tool};
use serde_json::json;
use tower::{Layer, Service};

#[tokio::test]
async fn a_call_without_a_record_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(&AuditConfig::new(folder.path().join("a.jsonl"))).unwrap();
    let mut service = AuditLayer::new(log.clone()).layer(at_once(ToolOutput::text("done")));
    let mut allocates = |asked| {
        allocation_counter::measure(|| {
            let answer = pin!(service.call(asked)).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(answer, Poll::Ready(Ok(_))));
        })
        .count_total
    };
    let public = tool("see").build();
    assert_eq!(allocates(call(&public, json!({}))), 0);
    let recorded = tool("pay")
        .hint(|hints| hints.audit_required = Some(true))
        .build();
    let count = allocates(call(&recorded, json!({})));
    assert!((1..=8).contains(&count), "{count}");
    log.close().await;
}
