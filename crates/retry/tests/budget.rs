//! How many repeats a replica set gets.

use std::error::Error;

use futures_util::future::join_all;
use serde_json::json;
use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolError};
use tollgate_retry::{RetryConfig, RetryLayer};
use tollgate_testkit::{MockService, call, tool};
use tower::ServiceExt;
use tower_layer::Layer;

fn refusing() -> MockService {
    MockService::new(|_, _| async {
        let kind = ErrorKind::ConnectFailed;
        Err(ToolError::new(
            kind,
            Delivery::NotSent,
            "connection refused",
        ))
    })
}

fn read_of(set: &str) -> ToolCall {
    call(&tool("get_order").set(set).read_only().build(), json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_hundred_failing_reads_cost_a_fifth_and_the_reserve() {
    let mock = refusing();
    let service = RetryLayer::default().layer(mock.clone());
    let calls = (0..100).map(|_| service.clone().oneshot(read_of("orders")));
    let results = join_all(calls).await;
    assert!(results.iter().all(Result::is_err));
    // all fail at once, so all have paid in before a second repeat is due: nothing is left over
    assert_eq!(mock.started(), 100 + 20 + 3);
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other_costs_no_more() {
    let mock = refusing();
    let service = RetryLayer::default().layer(mock.clone());
    for _ in 0..100 {
        let result = service.clone().oneshot(read_of("orders")).await;
        result.unwrap_err();
    }
    assert_eq!(mock.started(), 100 + 20 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_is_told_and_leaves_the_kind() {
    let layer = RetryLayer::new(RetryConfig::default().with_budget_reserve(0)).unwrap();
    let mock = refusing();
    let service = layer.layer(mock.clone());
    let error = service.oneshot(read_of("orders")).await.unwrap_err();
    assert_eq!(mock.started(), 1);
    assert_eq!(error.kind(), ErrorKind::ConnectFailed);
    assert_eq!(error.delivery(), Delivery::NotSent);
    let told = error.to_string();
    assert!(told.contains("connection refused"), "{told}");
    assert!(told.contains("budget") && told.contains("orders"), "{told}");
    let cause = error.source().unwrap().to_string();
    assert!(cause.starts_with("connection refused ("), "{cause}");
    let budget = &layer.budgets()[0];
    assert_eq!((budget.set.as_str(), budget.refused), ("orders", 1));
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_replica_set_leaves_the_others_their_repeats() {
    let layer = RetryLayer::default();
    let (sick, flaky) = (refusing(), refusing());
    for _ in 0..50 {
        let result = layer.layer(sick.clone()).oneshot(read_of("sick")).await;
        result.unwrap_err();
    }
    let result = layer.layer(flaky.clone()).oneshot(read_of("flaky")).await;
    result.unwrap_err();
    assert_eq!(flaky.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn successes_pay_for_later_repeats() {
    let layer = RetryLayer::new(RetryConfig::default().with_budget_reserve(0)).unwrap();
    let service = layer.layer(MockService::counting());
    for _ in 0..10 {
        service.clone().oneshot(read_of("orders")).await.unwrap();
    }
    assert_eq!(layer.budgets()[0].tokens, 2);
}
