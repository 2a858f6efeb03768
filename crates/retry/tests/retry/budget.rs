//! How many retries a replica set gets.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_retry::{Retry, RetryConfig, RetryLayer, RetryPolicy};
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
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
    // all fail at once, so all have paid in before a second retry is due: nothing is left over
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
    let message = error.to_string();
    assert!(message.contains("connection refused"), "{message}");
    assert!(
        message.contains("budget") && message.contains("orders"),
        "{message}"
    );
    let cause = error.source().unwrap().to_string();
    assert!(cause.starts_with("connection refused ("), "{cause}");
    let budget = &layer.budgets()[0];
    assert_eq!((budget.set.as_str(), budget.refused), ("orders", 1));
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_replica_set_leaves_the_others_their_retries() {
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
async fn successes_pay_for_later_retries() {
    let layer = RetryLayer::new(RetryConfig::default().with_budget_reserve(0)).unwrap();
    let service = layer.layer(MockService::counting());
    for _ in 0..10 {
        service.clone().oneshot(read_of("orders")).await.unwrap();
    }
    assert_eq!(layer.budgets()[0].tokens, 2);
}

/// One call: how often it fails before it succeeds, and when it is made.
#[derive(Debug, Clone)]
struct Scripted {
    failures: usize,
    after_ms: u64,
    given_up_after_ms: Option<u64>,
}

fn scripted() -> impl Strategy<Value = Scripted> {
    (
        0_usize..12,
        0_u64..400,
        prop::option::weighted(0.2, 0_u64..400),
    )
        .prop_map(|(failures, after_ms, given_up_after_ms)| Scripted {
            failures,
            after_ms,
            given_up_after_ms,
        })
}

/// Makes the calls, each at its time, one after the other or all together. Returns how many
/// attempts there were after each moment, and how many calls by then.
async fn make(calls: Vec<Scripted>, together: bool, service: Retry<MockService>) {
    let ms = Duration::from_millis;
    let make = |scripted: Scripted| {
        let service = service.clone();
        async move {
            tokio::time::sleep(ms(scripted.after_ms)).await;
            let arguments = json!({ "failures": scripted.failures });
            let read = call(&tool("get_order").read_only().build(), arguments);
            let limit = scripted.given_up_after_ms.map_or(Duration::MAX, ms);
            let _ended = tokio::time::timeout(limit, service.oneshot(read)).await;
        }
    };
    if together {
        join_all(calls.into_iter().map(make)).await;
    } else {
        for scripted in calls {
            make(scripted).await;
        }
    }
}

proptest! {
    /// At no moment are there more attempts than calls, a fifth of them and the reserve, whatever
    /// fails, and also if callers leave.
    #[test]
    fn attempts_stay_within_a_fifth_of_the_calls_and_the_reserve(
        calls in prop::collection::vec(scripted(), 1..120),
        together in any::<bool>(),
        max_attempts in 1_u32..12,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let excess = Arc::new(AtomicI64::new(i64::MIN));
        let firsts = Arc::new(AtomicI64::new(0));
        let mock = {
            let excess = excess.clone();
            MockService::new(move |call, n| {
                let number = call.attempt().number;
                let first = firsts.fetch_add(i64::from(number == 1), Ordering::SeqCst);
                let calls = first + i64::from(number == 1);
                // in fifths: five times the attempts, less six times the calls
                let over = 5 * i64::try_from(n).unwrap() - 6 * calls;
                excess.fetch_max(over, Ordering::SeqCst);
                let failures: serde_json::Value = serde_json::from_slice(call.arguments()).unwrap();
                let fails = failures["failures"].as_u64() >= Some(u64::from(number));
                async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    match fails {
                        true => Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer")),
                        false => Ok(ToolOutput::text("done")),
                    }
                }
            })
        };
        let config = RetryConfig::default().with_max_attempts(max_attempts);
        let service = Retry::new(mock, RetryPolicy::new(config).unwrap());
        runtime.block_on(make(calls, together, service));
        let excess = excess.load(Ordering::SeqCst);
        prop_assert!(excess <= 5 * 3, "{excess} fifths beyond 1.2 attempts per call");
    }
}

#[tokio::test(start_paused = true)]
async fn every_refused_retry_is_counted_and_says_so() {
    let layer = RetryLayer::default();
    let mut refused = 0;
    for _ in 0..50 {
        let service = layer.layer(refusing());
        let error = service.oneshot(read_of("orders")).await.unwrap_err();
        refused += u32::from(
            error
                .message()
                .contains("budget of replica set `orders` is spent"),
        );
    }
    assert_eq!(layer.budgets()[0].refused, refused);
    assert!(refused > 30, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_a_gate_of_our_own_refused_costs_nothing() {
    for (kind, delivery, spent) in [
        (ErrorKind::Overloaded, Delivery::NotSent, 0),
        (ErrorKind::RateLimited, Delivery::NotSent, 0),
        // these reached a server, or tried to
        (ErrorKind::Overloaded, Delivery::Answered, 2),
        (ErrorKind::RateLimited, Delivery::Answered, 2),
        (ErrorKind::ConnectFailed, Delivery::NotSent, 2),
    ] {
        let config = RetryConfig::default().with_budget_percent(0);
        let layer = RetryLayer::new(config).unwrap();
        let mock =
            MockService::new(
                move |_, _| async move { Err(ToolError::new(kind, delivery, "scripted")) },
            );
        let service = layer.layer(mock.clone());
        service.oneshot(read_of("orders")).await.unwrap_err();
        assert_eq!(mock.started(), 3, "{kind}, {delivery}");
        assert_eq!(layer.budgets()[0].tokens, 3 - spent, "{kind}, {delivery}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_returns_has_a_new_budget_with_the_reserve() {
    let layer = RetryLayer::default();
    let service = layer.layer(refusing());
    for set in ["orders", "kept"] {
        let _ = service.clone().oneshot(read_of(set)).await;
    }
    layer.retain_sets(|set| set.as_str() == "kept");
    let left: Vec<_> = layer.budgets().into_iter().map(|one| one.set).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].as_str(), "kept");

    let mock = refusing();
    let service = layer.layer(mock.clone());
    let read = tool("get_order").set("orders").read_only().build();
    for _ in 0..3 {
        let _ = service.clone().oneshot(call(&read, json!({}))).await;
    }
    // three retries of the reserve, and what three calls pay in is not one more
    assert_eq!(mock.started(), 3 + 3);
}
