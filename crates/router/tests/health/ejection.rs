//! Servers that fail are left out, and come back by a probe.

use std::sync::Arc;
use std::time::Duration;

use callward_core::ErrorKind;
use callward_router::{HealthConfig, HealthState, Member, StrategyName};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::advance;
use tower::ServiceExt;

use crate::bed::{Bed, fated, fault, server};

const SECOND: Duration = Duration::from_secs(1);

const STRATEGIES: [StrategyName; 4] = [
    StrategyName::PeakEwma,
    StrategyName::LeastConnections,
    StrategyName::RoundRobin,
    StrategyName::Weighted,
];

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_fast_attracts_no_traffic() {
    let read = tool("read").read_only().build();
    for strategy in STRATEGIES {
        let (bed, fates) = Bed::new(strategy, 10);
        fates[3].fails();
        // a call each 100 ms for ten minutes
        for _ in 0..6_000 {
            let _ = bed.send(&read).await;
            advance(SECOND / 10).await;
        }
        // the five that eject it, and then a probe after each ejection: 30, 60, 90, 120, 150 s
        let got = bed.got("d");
        assert!((5..=10).contains(&got), "{strategy:?}: {got} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn within_twenty_calls_it_gets_its_probe_traffic_only_even_if_all_come_at_once() {
    let read = tool("read").read_only().build();
    for strategy in STRATEGIES {
        let (bed, fates) = Bed::new(strategy, 10);
        fates[0].fails();
        let mut after = 0;
        while bed.got("a") < 20 && after < 10_000 {
            bed.send_many(&read, 1).await;
            after += 1;
        }
        // a strategy that sees it fail may leave it alone even before
        assert!(bed.got("a") <= 5, "{strategy:?}: {} calls", bed.got("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_half_of_its_calls_is_found_by_its_share() {
    let read = tool("read").read_only().build();
    let flaky = MockService::new(|_, n| {
        std::future::ready(match n % 2 {
            0 => Err(fault()),
            _ => Ok(callward_core::ToolOutput::text("fine")),
        })
    });
    let mut members: Vec<_> = ["b", "c"].map(|id| fated(id).0).into();
    members.push(Member::new(server("a"), flaky));
    let bed = Bed::of(HealthConfig::default(), StrategyName::RoundRobin, members);
    for _ in 0..200 {
        let _ = bed.send(&read).await;
        advance(SECOND / 10).await;
    }
    assert_eq!(bed.state("a"), HealthState::Ejected);
    let told = bed.told.lock();
    let reason = &told[0].change.reason;
    assert!(
        reason.contains("ended well, 100 % of the others'"),
        "{reason}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_is_the_probe_and_not_a_destructive_call() {
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 2);
    bed.send_many(&delete, 20).await;
    assert_eq!((bed.got("a"), bed.got("b")), (10, 10));
    fates[0].fails();
    bed.send_many(&read, 10).await;
    assert_eq!(bed.state("a"), HealthState::Ejected);

    let before = bed.got("a");
    advance(59 * SECOND).await;
    bed.send_many(&delete, 20).await;
    assert_eq!(
        bed.got("a"),
        before,
        "due for a probe, but not for this one"
    );
    fates[0].works();
    bed.send_many(&read, 2).await;
    assert_eq!(bed.got("a"), before + 1);
    assert_eq!(bed.state("a"), HealthState::SlowStart);
    bed.send_many(&delete, 20).await;
    assert_eq!(bed.got("a"), before + 11);
}

#[tokio::test(start_paused = true)]
async fn where_the_only_primary_is_ejected_a_destructive_call_is_refused_and_told_why() {
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    let (primary, fate) = fated("a");
    let (replica, _) = fated("b");
    let light = replica.with_weight(callward_core::Weight::new(10).unwrap());
    let config = HealthConfig::default().with_outlier(None);
    let bed = Bed::of(config, StrategyName::RoundRobin, vec![primary, light]);
    fate.fails();
    bed.send_many(&read, 10).await;
    let error = bed.send(&delete).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    let text = error.message();
    assert!(text.contains("a failed too often lately"), "{text}");
    assert!(text.contains("b has weight 10, below 50"), "{text}");
    assert_eq!(bed.got("a"), 5);
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_a_dropped_one_makes_room() {
    let read = tool("read").read_only().build();
    let (gated, gate) = MockService::gated();
    let (sick, fate) = fated("a");
    let bed = Bed::of(
        HealthConfig::default().with_outlier(None),
        StrategyName::RoundRobin,
        vec![sick, fated("b").0],
    );
    fate.fails();
    bed.send_many(&read, 10).await;
    // the same server, which now takes its time
    let mut members = vec![Member::new(server("a"), gated.clone())];
    members.push(fated("b").0);
    bed.pool.set_members(crate::bed::set(), members);
    assert_eq!(
        bed.state("a"),
        HealthState::Ejected,
        "it is the same server"
    );
    advance(30 * SECOND).await;

    let ten = || join_all((0..10).map(|_| bed.router().oneshot(call(&read, json!({})))));
    let mut running = ten();
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(gated.started(), 1);
    drop(running);
    assert_eq!(
        bed.state("a"),
        HealthState::Ejected,
        "nothing is known of it"
    );
    let mut running = ten();
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(gated.started(), 2);
    gate.open(1);
    running.await;
    assert_eq!(bed.state("a"), HealthState::SlowStart);
}

#[tokio::test(start_paused = true)]
async fn a_set_of_one_ejects_nobody() {
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    let (bed, fates) = Bed::new(StrategyName::default(), 1);
    fates[0].fails();
    bed.send_many(&read, 100).await;
    assert_eq!(bed.got("a"), 100);
    fates[0].works();
    assert!(bed.send(&delete).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_change_is_told_once_and_in_order() {
    let read = tool("read").read_only().build();
    let (bed, fates) = Bed::new(StrategyName::RoundRobin, 3);
    fates[1].fails();
    bed.send_many(&read, 100).await;
    advance(30 * SECOND).await;
    bed.send_many(&read, 3).await;
    fates[1].works();
    advance(60 * SECOND).await;
    bed.send_many(&read, 3).await;
    let told: Vec<String> = Arc::clone(&bed.told)
        .lock()
        .iter()
        .map(|update| {
            let change = &update.change;
            assert_eq!((update.set.as_str(), update.server.as_str()), ("test", "b"));
            format!("{} to {}: {}", change.from, change.to, change.reason)
        })
        .collect();
    assert_eq!(
        told,
        [
            "healthy to ejected: 5 faults in a row",
            "probing to ejected: its probe failed",
            "probing to slow_start: its probe succeeded",
        ]
    );
}
