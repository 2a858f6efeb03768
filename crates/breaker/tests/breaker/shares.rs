//! Calls through a breaker that opens by the share of calls that fail or are slow.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, BreakerState};
use callward_core::{Delivery, ErrorKind, ProgressSink, ServerId, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{advance, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

const SECOND: Duration = Duration::from_secs(1);

fn read() -> ToolCall {
    call(&tool("get_order").read_only().build(), json!({}))
}

fn breaker(inner: MockService, set: &BreakerSet) -> Breaker<MockService> {
    BreakerLayer::new(set.clone(), ServerId::new("a").unwrap()).layer(inner)
}

fn set(config: BreakerConfig) -> BreakerSet {
    BreakerSet::new(config.with_failures(0), BreakerConfig::server()).unwrap()
}

/// Takes 6 s, of which the last 5 s are spent waiting for a person.
fn asks_a_person() -> MockService {
    MockService::new(|call: ToolCall, _| async move {
        sleep(SECOND).await;
        let sink = call.progress().cloned().unwrap();
        sink.report(b"half");
        sink.waits_for_person(true);
        sleep(5 * SECOND).await;
        sink.waits_for_person(false);
        Ok(ToolOutput::text("yes"))
    })
}

#[tokio::test(start_paused = true)]
async fn half_of_a_minutes_calls_failing_opens_it() {
    let set = set(BreakerConfig::default().with_failure_rate(50));
    let mock = MockService::new(|_, n| async move {
        if n % 2 == 0 {
            let text = "connection refused";
            Err(ToolError::new(
                ErrorKind::ConnectFailed,
                Delivery::NotSent,
                text,
            ))
        } else {
            Ok(ToolOutput::text("fine"))
        }
    });
    let service = breaker(mock.clone(), &set);
    for _ in 0..20 {
        let _answer = service.clone().oneshot(read()).await;
        advance(SECOND).await;
    }
    assert_eq!(mock.started(), 10);
    let error = service.oneshot(read()).await.unwrap_err();
    let reported = error.message();
    assert!(
        reported.contains("5 of 10 calls within 60s failed, the last: connection refused"),
        "{reported}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_tells_the_shares() {
    let set = set(BreakerConfig::default().with_slow_calls(SECOND, 100));
    let mock = MockService::new(|_, n| async move {
        sleep(SECOND * u32::from(n % 4 == 0)).await;
        Ok(ToolOutput::text("fine"))
    });
    let service = breaker(mock, &set);
    for _ in 0..8 {
        service.clone().oneshot(read()).await.unwrap();
    }
    let window = set.snapshot()[0].window.unwrap();
    assert_eq!((window.calls, window.failed, window.slow), (8, 0, 2));
    advance(60 * SECOND).await;
    assert_eq!(set.snapshot()[0].window.unwrap().calls, 0);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_open_it_and_a_persons_time_does_not() {
    let config = BreakerConfig::default()
        .with_slow_calls(2 * SECOND, 100)
        .with_min_calls(3);
    let patient = set(config);
    let service = breaker(asks_a_person(), &patient);
    for _ in 0..10 {
        service.clone().oneshot(read()).await.unwrap();
    }
    assert_eq!(patient.snapshot()[0].state, BreakerState::Closed);
    assert_eq!(patient.snapshot()[0].window.unwrap().slow, 0);

    let slow = set(config);
    let mock = MockService::new(|_, _| async {
        sleep(2 * SECOND).await;
        Ok(ToolOutput::text("at last"))
    });
    let service = breaker(mock.clone(), &slow);
    for _ in 0..10 {
        let _answer = service.clone().oneshot(read()).await;
    }
    assert_eq!(mock.started(), 3);
    assert_eq!(
        slow.snapshot()[0].last_trip.as_deref(),
        Some("3 of 3 calls within 60s took 2s or longer")
    );
}

/// Records the progress it receives.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl ProgressSink for Recorded {
    fn report(&self, params: &[u8]) {
        let text = String::from_utf8(params.to_vec()).unwrap();
        self.0.lock().push(text);
    }

    fn waits_for_person(&self, waits: bool) {
        self.0.lock().push(format!("waits: {waits}"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_listener_still_receives_everything() {
    let reported = Arc::new(Recorded::default());
    let timed = set(BreakerConfig::default().with_slow_calls(SECOND, 50));
    let call = read().with_progress(reported.clone());
    breaker(asks_a_person(), &timed)
        .oneshot(call)
        .await
        .unwrap();
    assert_eq!(*reported.0.lock(), ["half", "waits: true", "waits: false"]);
}

#[tokio::test(start_paused = true)]
async fn where_time_is_not_taken_nobody_listens() {
    let mock = MockService::new(|call: ToolCall, _| async move {
        assert!(call.progress().is_none());
        Ok(ToolOutput::text("fine"))
    });
    let plain = set(BreakerConfig::default().with_failure_rate(50));
    breaker(mock, &plain).oneshot(read()).await.unwrap();
}
