//! Calls through a breaker that opens by the share of calls that fail or are slow.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerLayer, BreakerSet, BreakerState};
use callward_core::{ProgressSink, ServerId, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{advance, sleep};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::script::check;

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
async fn a_share_of_failed_or_slow_calls_opens_it() {
    check(
        "
        half of a minute's calls fail
        | layer:tool conf:failures=0 conf:failure_rate=50 fails:connect_failed 5*get works 4*get=ok
        | fails:connect_failed get get=30s started=10
        | says:6_of_10_calls_within_60s_failed,_the_last:_scripted
        slow calls
        | layer:tool conf:slow=2s conf:min_calls=3 takes:2s 3*get=ok get=30s
        | says:3_of_3_calls_within_60s_took_2s_or_longer
        ",
    )
    .await;
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
