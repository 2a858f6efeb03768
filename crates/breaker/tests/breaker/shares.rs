//! Calls through a breaker that opens by the share of calls that fail or are slow.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use callward_breaker::{BreakerConfig, BreakerLayer, BreakerSet, BreakerState};
use callward_core::{ProgressSink, ToolCall};
use callward_testkit::MockService;
use parking_lot::Mutex;
use tokio::time::sleep;
use tower::{Layer, ServiceExt};

use crate::bed::{fine, of, secs, server};

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
async fn slow_calls_count_without_the_time_of_persons() {
    let mut config = BreakerConfig::default();
    (config.slow_after, config.slow_rate) = (Some(secs(2)), Some(0.25));
    (config.window, config.min_calls) = (secs(600), 10);
    // each call takes a second, and each fourth one more; a person takes five
    let mock = MockService::new(|call: ToolCall, n| async move {
        let sink = call.progress().cloned().unwrap();
        sink.report(b"half");
        sink.waits_for_person(true);
        sleep(secs(5)).await;
        sink.waits_for_person(false);
        sleep(secs(1 + u64::from(n % 4 == 0))).await;
        fine()
    });
    let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
    let service = BreakerLayer::new(set.clone(), server("a")).layer(mock);
    for _ in 0..8 {
        service.clone().oneshot(of("get")).await.unwrap();
    }
    let window = set.snapshot()[0].window.unwrap();
    assert_eq!((window.calls, window.failed, window.slow), (8, 0, 2));
    // a sink of the caller's own still receives everything
    let reported = Arc::new(Recorded::default());
    let call = of("get").with_progress(reported.clone());
    service.clone().oneshot(call).await.unwrap();
    assert_eq!(*reported.0.lock(), ["half", "waits: true", "waits: false"]);
    for _ in 0..3 {
        service.clone().oneshot(of("get")).await.unwrap();
    }
    let status = &set.snapshot()[0];
    assert_eq!(status.state, BreakerState::Open);
    let why = status.last_trip.as_deref().unwrap();
    assert_eq!(why, "3 of 12 calls within 600s took 2s or longer");
}
