//! Which server gets a call, and why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bed::{Bed, counting, member, not_sent, refusing, server, weight, well};
use callward_core::{Delivery, ErrorKind};
use callward_router::{Drained, ExclusionReason, StrategyName};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Service, ServiceExt};

#[tokio::test(start_paused = true)]
async fn a_lone_server_is_chosen_however_it_is() {
    let sick = Arc::new(AtomicBool::new(false));
    let health = sick.clone();
    let lone = counting("a").with_gate(move |_| well(!health.load(Ordering::SeqCst)));
    let bed = Bed::new(StrategyName::default(), vec![lone]);
    let read = tool("read").read_only().build();
    assert_eq!(bed.route(&read).await, ("a".to_owned(), "only server"));
    sick.store(true, Ordering::SeqCst);
    let reason = "no healthy server";
    assert_eq!(bed.route(&read).await, ("a".to_owned(), reason));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_candidate_is_never_asked() {
    let gone = || counting("a").with_gate(|_| Err(ExclusionReason::NotOffered));
    let read = tool("read").read_only().build();
    let bed = Bed::new(StrategyName::default(), vec![gone(), counting("b")]);
    assert_eq!(bed.route_many(&read, 8).await, "bbbbbbbb");
    let bed = Bed::new(StrategyName::default(), vec![gone()]);
    let error = bed.send(call(&read, json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    let words = "a does not offer the tool";
    assert!(error.message().contains(words), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_drained_server_gets_no_call_and_says_when_it_is_idle() {
    let slow = MockService::new(|_, _| async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok(callward_core::ToolOutput::text("late"))
    });
    let bed = Bed::new(StrategyName::default(), vec![member("a", &slow)]);
    let read = tool("read").read_only().build();
    let running = tokio::spawn(bed.router().oneshot(call(&read, json!({}))));
    tokio::task::yield_now().await;
    let idle = bed.pool.drain(&server("a")).unwrap();
    let error = bed.send(call(&read, json!({}))).await.unwrap_err();
    assert!(error.message().contains("a is drained"), "{error}");
    assert!(!running.is_finished());
    assert_eq!(idle.finished().await, Drained::Idle);
    running.await.unwrap().unwrap();
    bed.pool.undrain(&server("a")).unwrap();
    assert!(bed.send(call(&read, json!({}))).await.is_ok());
    assert!(bed.pool.drain(&server("z")).is_err());
}

#[tokio::test(start_paused = true)]
async fn round_robin_takes_turns_whatever_the_weights() {
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![
            counting("a"),
            counting("b").with_weight(weight(1)),
            counting("c"),
        ],
    );
    // heaviest first, then as given
    let read = tool("read").read_only().build();
    assert_eq!(bed.route_many(&read, 6).await, "acbacb");
    assert_eq!(bed.route(&read).await.1, "round_robin");
}

#[tokio::test(start_paused = true)]
async fn each_set_takes_its_own_turns() {
    let bed = Bed::new(StrategyName::RoundRobin, vec![counting("a"), counting("b")]);
    let other = "other".parse().unwrap();
    bed.pool
        .set_members(other, vec![counting("x"), counting("y")]);
    let here = tool("read").build();
    let there = tool("read").set("other").build();
    for (first, second) in [("a", "x"), ("b", "y"), ("a", "x")] {
        assert_eq!(bed.route(&here).await.0, first);
        assert_eq!(bed.route(&there).await.0, second);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_choose_among_the_same_servers_share_their_turns() {
    let bed = Bed::new(StrategyName::RoundRobin, vec![counting("a"), counting("b")]);
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    let mut deletes = String::new();
    for _ in 0..4 {
        bed.route(&read).await;
        deletes.push_str(&bed.route(&delete).await.0);
    }
    assert_eq!(deletes, "bbbb");
}

#[tokio::test(start_paused = true)]
async fn weights_are_exact_over_a_cycle_and_spread_within_it() {
    for strategy in [StrategyName::Weighted] {
        let weights = [("a", 5), ("b", 1), ("c", 1)];
        let members = weights.map(|(id, weight)| counting(id).with_weight(self::weight(weight)));
        let bed = Bed::new(strategy, members.into());
        let read = tool("read").read_only().build();
        let cycle = bed.route_many(&read, 7).await;
        assert_eq!(cycle, "aaabaca", "{strategy:?}");
        assert_eq!(bed.route_many(&read, 7).await, cycle, "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_share_of_a_sick_server_is_spread_over_all_others() {
    let members = ["a", "b", "c"].map(counting);
    let [a, b, c] = members;
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![a.with_gate(|_| Err(ExclusionReason::Unreachable)), b, c],
    );
    let routed = bed.route_many(&tool("read").build(), 12).await;
    assert_eq!(routed.matches('b').count(), 6, "{routed}");
    assert_eq!(routed.matches('c').count(), 6, "{routed}");
}

#[tokio::test(start_paused = true)]
async fn the_server_with_the_fewest_calls_in_flight_gets_the_next() {
    let (busy, gate) = MockService::gated();
    let bed = Bed::new(
        StrategyName::LeastConnections,
        vec![member("a", &busy), counting("b")],
    );
    let read = tool("read").read_only().build();
    let router = bed.router();
    // the first turn is a's, and its call stays
    let held = tokio::spawn(router.clone().oneshot(call(&read, json!({}))));
    while busy.started() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bed.in_flight("a"), 1);
    assert_eq!(bed.route_many(&read, 4).await, "bbbb");
    assert_eq!(bed.route(&read).await.1, "least_connections");

    gate.open(100);
    held.await.unwrap().unwrap();
    assert_eq!(bed.in_flight("a"), 0);
    let routed = bed.route_many(&read, 4).await;
    assert_eq!(routed.matches('a').count(), 2, "{routed}");
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_measured_by_weight() {
    let (heavy, _heavy_gate) = MockService::gated();
    let (light, _light_gate) = MockService::gated();
    let bed = Bed::new(
        StrategyName::LeastConnections,
        vec![
            member("a", &heavy).with_weight(weight(75)),
            member("b", &light).with_weight(weight(25)),
        ],
    );
    let read = tool("read").read_only().build();
    let mut router = bed.router();
    let held: Vec<_> = (0..8)
        .map(|_| router.call(call(&read, json!({}))))
        .collect();
    assert_eq!((bed.in_flight("a"), bed.in_flight("b")), (6, 2));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn servers_that_failed_this_call_come_last() {
    let bed = Bed::new(StrategyName::RoundRobin, vec![counting("a"), counting("b")]);
    let read = tool("read").read_only().build();
    for _ in 0..3 {
        let mut again = call(&read, json!({}));
        again.attempt_mut().advance(Some(&server("a")));
        assert_eq!(bed.route_call(again).await.0, "b");
    }
    let mut again = call(&read, json!({}));
    again.attempt_mut().advance(Some(&server("a")));
    again.attempt_mut().advance(Some(&server("b")));
    let (_, reason) = bed.route_call(again).await;
    assert_eq!(reason, "every other server failed this call");
}

#[tokio::test(start_paused = true)]
async fn a_preferred_category_comes_first_while_one_of_it_is_healthy() {
    let sick = Arc::new(AtomicBool::new(false));
    let health = sick.clone();
    let caching = counting("b")
        .with_categories(["caching", "eu"])
        .with_gate(move |_| well(!health.load(Ordering::SeqCst)));
    let bed = Bed::new(StrategyName::RoundRobin, vec![counting("a"), caching]);
    let set_name = tool("set_name").idempotent().build();
    for _ in 0..3 {
        let routed = bed.route(&set_name).await;
        assert_eq!(routed, ("b".to_owned(), "preferred category"));
    }
    sick.store(true, Ordering::SeqCst);
    assert_eq!(bed.route(&set_name).await, ("a".to_owned(), "round_robin"));
    // a tool that prefers nothing takes turns
    let routed = bed.route_many(&tool("read").read_only().build(), 4).await;
    assert_eq!(routed, "aaaa");
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_asked_when_nobody_else_can_be() {
    for strategy in [
        StrategyName::RoundRobin,
        StrategyName::Weighted,
        StrategyName::LeastConnections,
    ] {
        let sick = Arc::new(AtomicBool::new(false));
        let health = sick.clone();
        let main = counting("a").with_gate(move |_| well(!health.load(Ordering::SeqCst)));
        let bed = Bed::new(strategy, vec![main, counting("b").with_weight(weight(0))]);
        let read = tool("read").read_only().build();
        assert_eq!(bed.route_many(&read, 4).await, "aaaa", "{strategy:?}");
        sick.store(true, Ordering::SeqCst);
        assert_eq!(bed.route(&read).await, ("b".to_owned(), "standby"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_destructive_call_that_nobody_may_take_is_refused_with_the_reasons() {
    let bed = Bed::new(
        StrategyName::default(),
        vec![
            counting("a").with_weight(weight(49)),
            counting("b")
                .with_weight(weight(10))
                .with_gate(|_| Err(ExclusionReason::Unreachable)),
        ],
    );
    let delete = tool("delete_order").destructive().build();
    let error = bed.send(call(&delete, json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(
        error.message(),
        "no server of set \"test\" may take tool \"delete_order\": a has weight 49, below 50; \
         b has weight 10, below 50, and cannot be reached"
    );
    assert_eq!(bed.started("a") + bed.started("b"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_unknown_or_empty_is_named() {
    let bed = Bed::new(StrategyName::default(), vec![]);
    let empty = bed.send(call(&tool("x").build(), json!({}))).await;
    let unknown = bed
        .send(call(&tool("x").set("nowhere").build(), json!({})))
        .await;
    for (result, words) in [
        (empty, "set \"test\" may take tool \"x\": it has none"),
        (unknown, "no replica set \"nowhere\""),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
        assert_eq!(error.delivery(), Delivery::NotSent);
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_are_sick_the_answer_of_their_own_gates_reaches_the_caller() {
    let open = not_sent(ErrorKind::BreakerOpen);
    let members = ["a", "b"]
        .map(|id| refusing(id, open.clone()).with_gate(|_| Err(ExclusionReason::Unreachable)));
    let bed = Bed::new(StrategyName::default(), members.into());
    let error = bed
        .send(call(&tool("read").read_only().build(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!((bed.started("a"), bed.started("b")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_destructive_call_is_never_tried_on_a_sick_server() {
    let sick = |id| counting(id).with_gate(|_| Err(ExclusionReason::Unreachable));
    let delete = tool("delete").destructive().build();
    for members in [
        vec![sick("a")],
        vec![sick("a"), counting("b").with_weight(weight(49))],
        vec![sick("a"), sick("b")],
    ] {
        let bed = Bed::new(StrategyName::default(), members);
        let error = bed.send(call(&delete, json!({}))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
        assert_eq!(error.delivery(), Delivery::NotSent);
        assert!(error.message().contains("a cannot be reached"), "{error}");
        assert_eq!(bed.started("a"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_destructive_idempotent_call_prefers_caching_among_the_primaries() {
    let members = vec![
        counting("a").with_weight(weight(90)),
        counting("b").with_categories(["caching"]),
        counting("c")
            .with_categories(["caching"])
            .with_weight(weight(49)),
    ];
    let bed = Bed::new(StrategyName::RoundRobin, members);
    let clear = tool("clear")
        .destructive()
        .hint(|hints| hints.idempotent_hint = Some(true));
    let clear = clear.build();
    assert_eq!(bed.route_many(&clear, 4).await, "bbbb");
    drop(bed.pool.drain(&server("b")).unwrap());
    assert_eq!(bed.route(&clear).await.0, "a");
}
