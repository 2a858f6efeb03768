//! How many retries a replica set gets.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall};
use callward_retry::RetryLayer;
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use futures_util::poll;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use tokio::task::yield_now;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{Output, layer, ms, read, result, run, runtime, scripted, with, within};

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
    let (layer, mut errors) = (RetryLayer::default(), Vec::new());
    for _ in 0..50 {
        let ended = run(&layer, read_of("orders"), "connect_failed-").await;
        errors.push(ended.result.unwrap_err());
    }
    let last = errors.last().cloned().unwrap();
    let spent = "budget of replica set `orders` is spent";
    errors.retain(|error| error.message.contains(spent));
    let budget = &layer.budgets()[0];
    assert_eq!(budget.set.as_str(), "orders");
    assert_eq!(budget.refused as usize, errors.len());
    assert!(errors.len() > 30, "{}", errors.len());
    // the failure is still stated
    assert_eq!(last.kind, ErrorKind::ConnectFailed);
    assert_eq!(last.delivery, Delivery::NotSent);
    assert!(last.message.starts_with("scripted; not retried"), "{last}");
    let cause = last.source().unwrap().to_string();
    assert!(cause.starts_with("scripted ("), "{cause}");
    // the attempts before it are its history, each with its own message
    let refused = errors.iter().find(|error| error.attempts == 2).unwrap();
    let history = refused.history.iter().map(|attempt| &*attempt.message);
    assert_eq!(history.collect::<Vec<_>>(), ["scripted", "scripted"]);
    // another set has a budget of its own
    let flaky = run(&layer, read_of("flaky"), "connect_failed-").await;
    assert_eq!(flaky.begins.len(), 3);
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
        let layer = layer(with(|config| config.budget_percent = 0));
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
    assert_eq!(left, ["kept".parse().unwrap()]);
    let mut attempts = 0;
    for _ in 0..3 {
        let ended = run(&layer, read_of("orders"), "connect_failed-").await;
        attempts += ended.begins.len();
    }
    // three retries of the reserve, and what three calls pay in is not one more
    assert_eq!(attempts, 3 + 3);
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Lost,
    /// A breaker refuses it.
    Refused,
}

/// One call: how its attempts end, when it is made, and how long its caller waits.
#[derive(Debug, Clone)]
struct Scripted {
    fates: Vec<Fate>,
    after: Duration,
    patience: Duration,
}

fn scripted_calls() -> impl Strategy<Value = Vec<Scripted>> {
    let fate = prop_oneof![
        1 => Just(Fate::Answered),
        5 => Just(Fate::Lost),
        3 => Just(Fate::Refused),
    ];
    let patience = prop_oneof![1 => (0_u64..400).prop_map(ms), 4 => Just(ms(600_000))];
    let after = (0_u64..400).prop_map(ms);
    let call = (prop::collection::vec(fate, 0..12), after, patience);
    let call = call.prop_map(|(fates, after, patience)| Scripted {
        fates,
        after,
        patience,
    });
    prop::collection::vec(call, 1..120)
}

proptest! {
    /// At no moment are there more attempts than calls, a fifth of them and the reserve, whatever
    /// fails and whatever breakers refuse, also if callers leave; and no token is lost.
    #[test]
    fn attempts_stay_within_a_fifth_of_the_calls_and_the_reserve(
        calls in scripted_calls(),
        max_attempts in 1_u32..12,
        reserve in 0_u32..10,
        pays in any::<bool>(),
    ) {
        let fifth = u32::from(pays);
        // the attempts of each call that got out, and how many calls were made
        let counts = Arc::new(Mutex::new((vec![0_u32; calls.len()], 0)));
        let (counted, fates) = (counts.clone(), calls.clone());
        let mock = MockService::new(move |call, _| {
            let id: usize = serde_json::from_slice(call.arguments()).unwrap();
            let nth = call.attempt().number as usize - 1;
            let fate = fates[id].fates.get(nth).copied().unwrap_or(Fate::Answered);
            let (out, made) = &mut *counted.lock();
            out[id] += u32::from(fate != Fate::Refused);
            *made += u32::from(nth == 0);
            let all: u32 = out.iter().sum();
            assert!(all * 5 <= *made * (5 + fifth) + reserve * 5, "{all} of {made} calls");
            async move {
                if fate == Fate::Refused {
                    return result("breaker_open-@1000");
                }
                tokio::time::sleep(ms(5)).await;
                result(if fate == Fate::Lost { "timeout?" } else { "ok" })
            }
        });
        let layer = layer(with(|config| {
            (config.max_attempts, config.budget_reserve) = (max_attempts, reserve);
            config.budget_percent = fifth * 20;
        }));
        let service = layer.layer(mock);
        let make = |(id, scripted): (usize, Scripted)| {
            let service = service.clone();
            async move {
                tokio::time::sleep(scripted.after).await;
                let tool = tool("get_order").read_only().build();
                let call = within(ms(600_000), call(&tool, json!(id)));
                let _ended = tokio::time::timeout(scripted.patience, service.oneshot(call)).await;
            }
        };
        runtime().block_on(join_all(calls.into_iter().enumerate().map(make)));
        let retries: u32 = counts.lock().0.iter().map(|out| out.saturating_sub(1)).sum();
        let left = layer.budgets().first().map_or(reserve, |budget| budget.tokens);
        prop_assert!(pays || retries + left == reserve, "{retries} + {left}");
    }
}

/// Polls a call this often at most, with all the time in between that it wants, and drops it.
async fn poll_times(call: impl Future<Output = Output>, times: usize) -> bool {
    let mut call = pin!(call);
    for _ in 0..times {
        if poll!(call.as_mut()).is_ready() {
            return true;
        }
        // a pause passes; what is not one is ready again at once
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_spends_only_what_was_sent() {
    let mut polls = 0;
    loop {
        let layer = layer(with(|config| config.budget_reserve = 10));
        let mock = MockService::new(|_, _| async {
            yield_now().await;
            result("connection_lost?")
        });
        // callers wait once before it is ready, as for a limiter
        let service = layer.layer(mock.clone().ready_after(1));
        let done = poll_times(service.oneshot(read()), polls).await;
        let retries = mock.started().saturating_sub(1);
        let left = layer.budgets().first().map_or(10, |budget| budget.tokens);
        assert_eq!(left as usize, 10 - retries, "after {polls} polls");
        let started = mock.started();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!((mock.running(), mock.started()), (0, started));
        if done {
            assert_eq!(retries, 2);
            break;
        }
        polls += 1;
    }
    // three waits, three attempts and two pauses
    assert!(polls >= 8, "{polls}");
}
