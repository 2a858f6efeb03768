//! What a cache hit costs that is counted and measured: once its series are there, nothing that has to be
//! given back. In a process of its own, so that nothing else allocates meanwhile.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use callward_core::{CacheStatus, ToolCall, ToolError, ToolOutput};
use callward_telemetry::{CallSpanLayer, Metrics, Sampling};
use callward_testkit::{call, tool};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{ManualReader, SdkMeterProvider};
use serde_json::json;
use tower::{Layer, Service};

/// Answers as a cache does that has the answer.
#[derive(Clone)]
struct Hits(ToolOutput);

impl Service<ToolCall> for Hits {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        if let Some(record) = call.record() {
            record.set_cache(CacheStatus::Hit);
        }
        ready(Ok(self.0.clone()))
    }
}

fn ask<S>(service: &mut S, call: ToolCall)
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let mut answer = std::pin::pin!(service.call(call));
    assert!(Future::poll(answer.as_mut(), &mut cx).is_ready());
}

#[test]
fn a_hit_that_is_counted_and_measured_allocates_nothing() {
    let provider = SdkMeterProvider::builder()
        .with_reader(ManualReader::builder().build())
        .build();
    let metrics = Arc::new(Metrics::new(&provider.meter("test")));
    let hits = Hits(ToolOutput::text("ok"));
    let tool = tool("x").read_only().build();
    let counted = CallSpanLayer::new().with_metrics(metrics);
    let allocations = |layer: &CallSpanLayer, calls: u64| {
        let mut service = layer.layer(hits.clone());
        // what is made once: the series, and the thread's first record
        ask(&mut service, call(&tool, json!({"id": 1})));
        // each is held by nobody else, as those of callers are
        let made: Vec<_> = (0..calls)
            .map(|id| call(&tool, json!({ "id": id })))
            .collect();
        let ask_all = || made.into_iter().for_each(|call| ask(&mut service, call));
        allocation_counter::measure(ask_all).count_total
    };
    assert_eq!(allocations(&counted, 1_000), 0);
    // where somebody listens, but the call is left out, as well
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    let left_out = counted.clone().with_sampling(Sampling::never());
    assert_eq!(allocations(&left_out, 1_000), 0);
    // the check is one that can fail
    assert!(allocations(&counted, 10) > 0);
}
