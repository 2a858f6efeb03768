//! What leaves no record allocates nothing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callward_audit::AuditLayer;
use callward_core::{SecurityLevel, ToolOutput};
use callward_testkit::{at_once, call};
use serde_json::json;
use tower::{Layer, Service};

use crate::bed::{Bed, leveled, pay};

#[tokio::test]
async fn a_call_without_a_record_allocates_nothing() {
    let bed = Bed::new();
    let log = bed.open();
    let mut service = AuditLayer::new(log.clone()).layer(at_once(ToolOutput::text("done")));
    let mut allocates = |asked| {
        allocation_counter::measure(|| {
            let answer = pin!(service.call(asked)).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(answer, Poll::Ready(Ok(_))));
        })
        .count_total
    };
    let public = leveled("see", SecurityLevel::Public);
    assert_eq!(allocates(call(&public, json!({}))), 0);
    let count = allocates(pay(json!({})));
    assert!((1..=8).contains(&count), "{count}");
    log.close().await;
}
