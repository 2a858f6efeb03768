//! The exporter against a collector on a real socket.

mod metrics;
mod spans;
mod trouble;

use std::future::Future;
use std::time::Duration;

use callward_telemetry::export::{Exporter, OtlpConfig};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer};
use callward_testkit::collector::Collector;
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::{Layer, ServiceExt};
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

/// Longer than any test takes, so that no interval ends during one.
const NEVER: Duration = Duration::from_secs(3600);

/// Waits for an event, and fails if it does not happen. Generous, as build machines are slow.
async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within a minute"))
}

fn to(collector: &Collector) -> OtlpConfig {
    let mut config = OtlpConfig::new(collector.endpoint()).unwrap();
    let name = ("service.name".to_owned(), "test".to_owned());
    config.resource.extend([name]);
    config.interval = NEVER;
    config.metrics_interval = NEVER;
    config
}

/// Starts an exporter with batches of this size.
fn in_batches(collector: &Collector, spans: usize) -> Exporter {
    let mut config = to(collector);
    config.batch = spans;
    config.start().unwrap()
}

/// Makes `count` calls, each of which has a call span and an attempt span.
async fn calls(exporter: &Exporter, count: usize) {
    let attempts = AttemptSpanLayer::default().layer(MockService::counting());
    let service = CallSpanLayer::default().layer(attempts);
    let tool = tool("read_order").read_only().build();
    let made = async {
        for number in 0..count {
            let answer = service.clone().oneshot(call(&tool, json!({"id": number})));
            assert!(!answer.await.unwrap().is_error());
        }
    };
    made.with_subscriber(tracing_subscriber::registry().with(exporter.layer()))
        .await;
}
