//! Who was refused in front of a probe hears of its end.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, Permit};
use callward_core::{Delivery, ErrorKind, Reopening, ServerId, Tool, ToolError};
use callward_testkit::{MockService, call, tool};
use futures_util::{FutureExt, poll};
use serde_json::json;
use tokio::time::advance;
use tower::ServiceExt;
use tower_layer::Layer;

const OPEN: Duration = Duration::from_secs(30);

fn server() -> ServerId {
    ServerId::new("a").unwrap()
}

fn breaker(set: &BreakerSet) -> Breaker<MockService> {
    let down = MockService::new(|_, _| async {
        let kind = ErrorKind::ConnectFailed;
        Err(ToolError::new(kind, Delivery::NotSent, "scripted"))
    });
    BreakerLayer::new(set.clone(), server()).layer(down)
}

fn read() -> std::sync::Arc<Tool> {
    tool("get_order").read_only().build()
}

async fn refusal(set: &BreakerSet, tool: &std::sync::Arc<Tool>) -> ToolError {
    let error = breaker(set).oneshot(call(tool, json!({}))).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    error
}

/// Opens the breaker, lets its time pass, and takes the probe's place.
async fn probe(set: &BreakerSet) -> Permit {
    for _ in 0..3 {
        let error = breaker(set).oneshot(call(&read(), json!({}))).await;
        error.unwrap_err();
    }
    advance(OPEN).await;
    let circuit = set.circuit(&server(), read().name());
    circuit.admit().unwrap()
}

/// What is told to whoever is refused in front of this probe.
async fn behind_a_probe(set: &BreakerSet) -> (Permit, Reopening) {
    let permit = probe(set).await;
    let error = refusal(set, &read()).await;
    assert_eq!(error.retry_after(), Some(OPEN), "at the latest");
    (permit, error.reopening().unwrap().clone())
}

#[tokio::test(start_paused = true)]
async fn however_a_probe_ends_all_who_were_refused_hear_of_it() {
    let ends: [fn(Permit); 3] = [Permit::succeed, |permit| permit.fail(&"down"), drop];
    for end in ends {
        let set = BreakerSet::default();
        let (permit, reopening) = behind_a_probe(&set).await;
        let (mut one, mut other) = (reopening.reopened(), reopening.clone().reopened());
        let unpolled = reopening.reopened();
        assert!(poll!(&mut one).is_pending() && poll!(&mut other).is_pending());
        advance(Duration::from_secs(10)).await;
        assert!(poll!(&mut one).is_pending(), "it runs");
        end(permit);
        assert!(poll!(&mut one).is_ready() && poll!(&mut other).is_ready());
        // who comes late has missed nothing
        assert!(unpolled.now_or_never().is_some());
        assert!(reopening.reopened().now_or_never().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_closes_it_ends_the_wait_too() {
    let ends: [fn(&BreakerSet); 3] = [
        |set| set.reset_server(&server()),
        |set| set.force_closed(&server(), read().name()),
        |set| set.force_open(&server(), read().name()),
    ];
    for end in ends {
        let set = BreakerSet::default();
        let (_permit, reopening) = behind_a_probe(&set).await;
        let mut waiting = reopening.reopened();
        assert!(poll!(&mut waiting).is_pending());
        end(&set);
        assert!(poll!(&mut waiting).is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_ended_before_the_refusal_is_no_news() {
    let set = BreakerSet::default();
    let first = probe(&set).await;
    drop(first);
    let circuit = set.circuit(&server(), read().name());
    let _second = circuit.admit().unwrap();
    let error = refusal(&set, &read()).await;
    let mut waiting = error.reopening().unwrap().reopened();
    assert!(poll!(&mut waiting).is_pending());
}

#[tokio::test(start_paused = true)]
async fn while_its_time_is_not_over_there_is_nothing_to_hear_of() {
    let set = BreakerSet::default();
    for _ in 0..3 {
        let error = breaker(&set).oneshot(call(&read(), json!({}))).await;
        error.unwrap_err();
    }
    // the time it states is when it is over, and not before
    let error = refusal(&set, &read()).await;
    assert_eq!(error.retry_after(), Some(OPEN));
    assert!(error.reopening().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_gives_way_to_a_read_hears_of_that_read() {
    let set = BreakerSet::new(BreakerConfig::default()).unwrap();
    drop(probe(&set).await);
    let write = tool("get_order").build();
    let error = refusal(&set, &write).await;
    let mut waiting = error.reopening().unwrap().reopened();
    assert!(poll!(&mut waiting).is_pending());
    let circuit = set.circuit(&server(), read().name());
    circuit.admit().unwrap().succeed();
    assert!(poll!(&mut waiting).is_ready());
}
