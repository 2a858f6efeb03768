//! Calls through the breaker of a tool.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, BreakerState};
use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, share, tool};
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::script::check;

#[tokio::test(start_paused = true)]
async fn each_row_about_the_breaker_of_a_tool() {
    check(
        "
        three failures in a row open it, and the fourth call is refused at once
        | layer:tool fails:connect_failed 2*get @get=closed get @get=open +12s get=18s started=3
        | says:`get` says:`a` says:3_failures_in_a_row says:scripted says:18.0_s
        a rate-limited probe proves nothing
        | layer:tool fails:timeout 3*get +30s fails:rate_limited get @get=half_open works get=ok
        | @get=closed
        a probe that never ends does not lock the tool out
        | layer:tool fails:timeout 3*get works +30s gate a<get running=1 +10s get=1s says:20.0_s
        | +20s b<get running=2 a! get=1s open:1 b=ok @get=closed
        tools have breakers of their own
        | layer:tool fails:timeout 3*get works well=ok get=30s
        ",
    )
    .await;
    for probes in [1, 3] {
        check(&format!(
            "of fifty calls at once exactly {probes} get through
            | layer:tool conf:probes={probes} fails:timeout 3*get works +30s gate a<{probes}*get
            | b<{}*get running={probes} b=1s open:9 a=ok @get=closed 6*get=ok",
            50 - probes
        ))
        .await;
    }
    let faults = "connect_failed connection_lost protocol server_fault timeout";
    for fault in faults.split(' ') {
        check(&format!(
            "{fault}, one after the other
            | layer:tool fails:{fault} 3*get={fault} get=30s started=3
            {fault}, in flight together
            | layer:tool fails:{fault} takes:1s a<8*get a={fault} #get=1 a<8*get a={fault} #get=2
            | @get=closed a<8*get a={fault} @get=open"
        ))
        .await;
    }
    let others = "cancelled invalid_call overloaded rate_limited unauthorized unknown_tool";
    for other in others.split(' ') {
        check(&format!(
            "{other}\n| layer:tool fails:{other} 50*get={other} #get=0"
        ))
        .await;
    }
}

fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

fn read() -> ToolCall {
    call(&tool("get_order").read_only().build(), json!({}))
}

fn down() -> MockService {
    MockService::new(|_, _| async { failed(ErrorKind::ConnectFailed) })
}

fn failed(kind: ErrorKind) -> Result<ToolOutput, ToolError> {
    Err(ToolError::new(kind, Delivery::Unknown, "scripted"))
}

fn breaker(inner: MockService, set: &BreakerSet) -> Breaker<MockService> {
    BreakerLayer::new(set.clone(), server("a")).layer(inner)
}

fn state(set: &BreakerSet) -> BreakerState {
    set.snapshot()[0].state
}

#[tokio::test(start_paused = true)]
async fn servers_have_breakers_of_their_own() {
    let set = BreakerSet::default();
    for _ in 0..3 {
        breaker(down(), &set).oneshot(read()).await.unwrap_err();
    }
    assert_eq!(state(&set), BreakerState::Open);
    let other = BreakerLayer::new(set.clone(), server("b")).layer(MockService::counting());
    other.oneshot(read()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_one_call_count_once() {
    let set = BreakerSet::default();
    let (service, id) = (breaker(down(), &set), server("a"));
    for failures in 1..=3 {
        let mut call = read();
        for _ in 0..4 {
            service.clone().oneshot(call.clone()).await.unwrap_err();
            call.attempt_mut().advance(Some(&id));
            let counted = set.snapshot()[0].failures;
            assert_eq!(counted, if failures < 3 { failures } else { 0 });
        }
    }
    assert_eq!(state(&set), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_failures_counts_every_attempt() {
    let config = BreakerConfig::default()
        .with_failure_rate(50)
        .with_min_calls(4);
    let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
    let service = breaker(down(), &set);
    let mut call = read();
    for _ in 0..4 {
        assert!(set.snapshot().iter().all(|one| one.opened == 0));
        service.clone().oneshot(call.clone()).await.unwrap_err();
        call.attempt_mut().advance(Some(&server("a")));
    }
    assert_eq!(state(&set), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_a_hurry_does_not_open_it_and_a_patient_one_does() {
    let cases = [
        (1, true, 20),
        (4, true, 20),
        (5, true, 3),
        (60, true, 3),
        // the share did not end it: the server had all the time there was
        (1, false, 3),
    ];
    for (given, ends, started) in cases {
        let mock = MockService::new(move |call: ToolCall, _| async move {
            let share = call.attempt().share.as_ref();
            assert_eq!(share.map(|share| share.end(Duration::MAX)), Some(ends));
            failed(ErrorKind::Timeout)
        });
        let service = breaker(mock.clone(), &BreakerSet::default());
        for _ in 0..20 {
            let mut call = read();
            let time = Duration::from_secs(given);
            call.attempt_mut().share = Some(share(time, ends));
            service.clone().oneshot(call).await.unwrap_err();
        }
        assert_eq!(mock.started(), started, "{given} s");
    }
}
