//! Calls through a breaker.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, BreakerState};
use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, share, tool};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

mod crowd;

type Outcome = Result<ToolOutput, ToolError>;

fn server(id: &str) -> ServerId {
    ServerId::new(id).unwrap()
}

fn read() -> ToolCall {
    named("get_order")
}

fn named(name: &str) -> ToolCall {
    call(&tool(name).read_only().build(), json!({}))
}

fn failed(kind: ErrorKind) -> Outcome {
    let delivery = match kind {
        ErrorKind::ConnectFailed | ErrorKind::Overloaded => Delivery::NotSent,
        ErrorKind::Timeout | ErrorKind::Cancelled => Delivery::Unknown,
        _ => Delivery::Answered,
    };
    Err(ToolError::new(kind, delivery, "scripted"))
}

fn down() -> MockService {
    MockService::new(|_, _| async { failed(ErrorKind::ConnectFailed) })
}

fn after_a_second(kind: ErrorKind) -> MockService {
    MockService::new(move |_, _| async move {
        sleep(Duration::from_secs(1)).await;
        failed(kind)
    })
}

fn breaker(inner: MockService, set: &BreakerSet) -> Breaker<MockService> {
    BreakerLayer::new(set.clone(), server("a")).layer(inner)
}

/// Calls `count` times, one after the other.
async fn calls(service: &Breaker<MockService>, count: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for _ in 0..count {
        outcomes.push(service.clone().oneshot(read()).await);
    }
    outcomes
}

fn state(set: &BreakerSet) -> BreakerState {
    set.snapshot()[0].state
}

/// Opens the breaker of `read` on server `a`.
async fn trip(set: &BreakerSet) {
    calls(&breaker(down(), set), 3).await;
    assert_eq!(state(set), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn three_failures_in_a_row_open_it_and_the_fourth_call_is_refused_at_once() {
    let (mock, set) = (down(), BreakerSet::default());
    let service = breaker(mock.clone(), &set);
    calls(&service, 2).await;
    assert_eq!(state(&set), BreakerState::Closed);
    calls(&service, 1).await;
    assert_eq!(state(&set), BreakerState::Open);
    sleep(Duration::from_secs(12)).await;

    let start = Instant::now();
    let error = service.oneshot(read()).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(mock.started(), 3);
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(error.server(), Some(&server("a")));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(18)));
    let reported = error.message();
    for part in [
        "`get_order`",
        "`a`",
        "3 failures in a row",
        "scripted",
        "18.0 s",
    ] {
        assert!(reported.contains(part), "{part:?} in {reported:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_servers_fault_opens_it() {
    use ErrorKind::{
        Cancelled, ConnectFailed, ConnectionLost, InvalidCall, Overloaded, Protocol, RateLimited,
        ServerFault, Timeout, Unauthorized, UnknownTool,
    };
    let faults = [
        ConnectFailed,
        ConnectionLost,
        Protocol,
        ServerFault,
        Timeout,
    ];
    let others = [
        Cancelled,
        InvalidCall,
        Overloaded,
        RateLimited,
        Unauthorized,
        UnknownTool,
    ];
    let others = others.map(failed).into_iter();
    let others = others.chain([Ok(ToolOutput::error_text("no such order"))]);
    let rows = faults.map(|kind| (failed(kind), 3)).into_iter();
    for (outcome, started) in rows.chain(others.map(|outcome| (outcome, 50))) {
        let script = outcome.clone();
        let mock = MockService::new(move |_, _| std::future::ready(script.clone()));
        calls(&breaker(mock.clone(), &BreakerSet::default()), 50).await;
        assert_eq!(mock.started(), started, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_fifty_calls_at_once_exactly_the_probes_get_through() {
    for probes in [1, 3] {
        let config = BreakerConfig::default().with_probes(probes);
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        trip(&set).await;
        advance(Duration::from_secs(30)).await;
        let (mock, gate) = MockService::gated();
        let service = breaker(mock.clone(), &set);
        let all = join_all((0..50).map(|_| service.clone().oneshot(read())));
        let open = async {
            tokio::task::yield_now().await;
            assert_eq!(mock.running(), probes as usize);
            gate.open(50);
        };
        let (outcomes, ()) = tokio::join!(all, open);
        assert_eq!(mock.started(), probes as usize);
        assert_eq!(
            outcomes.iter().filter(|o| o.is_ok()).count(),
            probes as usize
        );
        assert_eq!(state(&set), BreakerState::Closed);
        // closed again: all pass
        assert!(calls(&service, 20).await.iter().all(Result::is_ok));
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_told_to_come_later_proves_nothing() {
    let set = BreakerSet::default();
    trip(&set).await;
    advance(Duration::from_secs(30)).await;
    let limited = MockService::new(|_, _| async { failed(ErrorKind::RateLimited) });
    calls(&breaker(limited, &set), 1).await;
    assert_eq!(state(&set), BreakerState::HalfOpen);
    calls(&breaker(MockService::counting(), &set), 1).await;
    assert_eq!(state(&set), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_ends_does_not_lock_the_tool_out() {
    let set = BreakerSet::default();
    trip(&set).await;
    advance(Duration::from_secs(30)).await;
    let (mock, gate) = MockService::gated();
    let service = breaker(mock.clone(), &set);
    let mut stuck = Box::pin(service.clone().oneshot(read()));
    assert!(futures_util::poll!(&mut stuck).is_pending());
    advance(Duration::from_secs(10)).await;
    let error = service.clone().oneshot(read()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert!(error.message().contains("20.0 s"), "{error}");
    advance(Duration::from_secs(20)).await;
    let mut second = Box::pin(service.clone().oneshot(read()));
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!(mock.running(), 2);
    // the stuck one was written off: dropping it frees nothing
    drop(stuck);
    assert!(service.clone().oneshot(read()).await.is_err());
    gate.open(1);
    second.await.unwrap();
    assert_eq!(state(&set), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn tools_and_servers_have_breakers_of_their_own() {
    let set = BreakerSet::default();
    trip(&set).await;
    let a = breaker(MockService::counting(), &set);
    a.oneshot(named("works")).await.unwrap();
    let b = BreakerLayer::new(set.clone(), server("b")).layer(MockService::counting());
    b.oneshot(read()).await.unwrap();
    let states: Vec<_> = set.snapshot().into_iter().map(|one| one.state).collect();
    let (open, closed) = (BreakerState::Open, BreakerState::Closed);
    assert_eq!(states, [open, closed, closed]);
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
