//! How many retries a replica set gets.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use callward_core::{Delivery, ErrorKind, ToolCall};
use callward_retry::{Retry, RetryConfig, RetryLayer};
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{layer, ms, result, run, runtime, scripted};

fn read_of(set: &str) -> ToolCall {
    call(&tool("get_order").set(set).read_only().build(), json!({}))
}

#[tokio::test(start_paused = true)]
async fn a_hundred_failing_reads_cost_a_fifth_and_the_reserve() {
    for together in [true, false] {
        let mock = scripted("connect_failed-");
        let service = RetryLayer::default().layer(mock.clone());
        let calls = (0..100).map(|_| service.clone().oneshot(read_of("orders")));
        if together {
            // all have paid in before a second retry is due: nothing is left over
            join_all(calls).await;
        } else {
            for call in calls {
                call.await.unwrap_err();
            }
        }
        assert_eq!(mock.started(), 100 + 20 + 3, "{together}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_refused_retry_is_counted_and_stated_in_the_error() {
    let (layer, mut refused) = (RetryLayer::default(), 0);
    let mut last = None;
    for _ in 0..50 {
        let error = run(&layer, read_of("orders"), "connect_failed-").await;
        let error = error.result.unwrap_err();
        let spent = "budget of replica set `orders` is spent";
        refused += u32::from(error.message().contains(spent));
        last = Some(error);
    }
    let budget = &layer.budgets()[0];
    assert_eq!((budget.set.as_str(), budget.refused), ("orders", refused));
    assert!(refused > 30, "{refused}");
    // the failure is still stated
    let error = last.unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectFailed);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(
        error.message().starts_with("scripted; not retried"),
        "{error}"
    );
    let cause = error.source().unwrap().to_string();
    assert!(cause.starts_with("scripted ("), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_replica_set_leaves_the_others_their_retries() {
    let layer = RetryLayer::default();
    for _ in 0..50 {
        run(&layer, read_of("sick"), "connect_failed-").await;
    }
    let flaky = run(&layer, read_of("flaky"), "connect_failed-").await;
    assert_eq!(flaky.begins.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn successes_pay_for_later_retries() {
    let layer = layer(RetryConfig::default().with_budget_reserve(0));
    for _ in 0..10 {
        run(&layer, read_of("orders"), "ok").await.result.unwrap();
    }
    assert_eq!(layer.budgets()[0].tokens, 2);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_a_gate_of_our_own_refused_costs_nothing() {
    for (failure, spent) in [
        ("overloaded-", 0),
        ("rate_limited-", 0),
        // these reached a server, or tried to
        ("overloaded!", 2),
        ("rate_limited!", 2),
        ("connect_failed-", 2),
    ] {
        let layer = layer(RetryConfig::default().with_budget_percent(0));
        let ended = run(&layer, read_of("orders"), failure).await;
        assert_eq!(ended.begins.len(), 3, "{failure}");
        assert_eq!(layer.budgets()[0].tokens, 3 - spent, "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_returns_has_a_new_budget_with_the_reserve() {
    let layer = RetryLayer::default();
    for set in ["orders", "kept"] {
        run(&layer, read_of(set), "connect_failed-").await;
    }
    layer.retain_sets(|set| set.as_str() == "kept");
    let left: Vec<_> = layer.budgets().into_iter().map(|one| one.set).collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].as_str(), "kept");
    let mut attempts = 0;
    for _ in 0..3 {
        let ended = run(&layer, read_of("orders"), "connect_failed-").await;
        attempts += ended.begins.len();
    }
    // three retries of the reserve, and what three calls pay in is not one more
    assert_eq!(attempts, 3 + 3);
}

/// One call: how often it fails before it succeeds, and when it is made.
#[derive(Debug, Clone)]
struct Scripted {
    failures: usize,
    after_ms: u64,
    given_up_after_ms: Option<u64>,
}

fn scripted_call() -> impl Strategy<Value = Scripted> {
    let given_up = prop::option::weighted(0.2, 0_u64..400);
    (0_usize..12, 0_u64..400, given_up).prop_map(|(failures, after_ms, given_up_after_ms)| {
        Scripted {
            failures,
            after_ms,
            given_up_after_ms,
        }
    })
}

/// Makes the calls, each at its time, one after the other or all together.
async fn make(calls: Vec<Scripted>, together: bool, service: Retry<MockService>) {
    let make = |scripted: Scripted| {
        let service = service.clone();
        async move {
            tokio::time::sleep(ms(scripted.after_ms)).await;
            let arguments = json!({ "failures": scripted.failures });
            let read = call(&tool("get_order").read_only().build(), arguments);
            let limit = scripted
                .given_up_after_ms
                .map_or(std::time::Duration::MAX, ms);
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
        calls in prop::collection::vec(scripted_call(), 1..120),
        together in any::<bool>(),
        max_attempts in 1_u32..12,
    ) {
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
                    tokio::time::sleep(ms(5)).await;
                    result(if fails { "timeout?" } else { "ok" })
                }
            })
        };
        let service = layer(RetryConfig::default().with_max_attempts(max_attempts)).layer(mock);
        runtime().block_on(make(calls, together, service));
        let excess = excess.load(Ordering::SeqCst);
        prop_assert!(excess <= 5 * 3, "{excess} fifths beyond 1.2 attempts per call");
    }
}
