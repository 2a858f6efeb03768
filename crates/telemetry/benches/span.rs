//! What observing a call costs, over a service that answers at once.
//!
//! Prints nanoseconds per call, the clone of the call included, as the fastest of many short
//! rounds: what else the machine does can only add.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use callward_core::{Tool, ToolCall, ToolError, ToolOutput};
use callward_telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics, Sampling};
use callward_testkit::{AtOnce, tool};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use tokio::time::Instant;
use tower::{Layer, Service};

/// Keeps the metrics pipeline real and sends nothing.
struct Nowhere;

impl PushMetricExporter for Nowhere {
    async fn export(&self, _: &ResourceMetrics) -> OTelSdkResult {
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Calls per round.
const CALLS: u32 = 500;

/// Makes a call that nobody else holds, as callers do: what a layer sets is then written in place.
fn call(tool: &Arc<Tool>) -> ToolCall {
    ToolCall::new(tool.clone(), &br#"{"id":1}"#[..])
}

/// Returns the nanoseconds of one call in the fastest round.
fn measure<S>(mut service: S, rounds: u32) -> f64
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let tool = tool("read").read_only().build();
    let mut cx = Context::from_waker(Waker::noop());
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                let answer = pin!(service.call(call(&tool))).poll(&mut cx);
                let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
            }
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    // `cargo test --benches` only proves that it runs
    let rounds = if std::env::args().any(|arg| arg == "--bench") {
        300
    } else {
        1
    };
    let leaf = AtOnce::new(ToolOutput::text("ok"));
    let attempt = AttemptSpanLayer::new();
    let span = CallSpanLayer::new();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(Nowhere)
        .build();
    let metrics = Arc::new(Metrics::new(&provider.meter("bench")));
    let measured = CallSpanLayer::new().with_metrics(metrics);
    let row = |name: &str, ns: f64| println!("| {name} | {ns:.1} |");

    println!("| ns per call | |");
    println!("| --- | --- |");
    row("the service alone", measure(leaf.clone(), rounds));
    row(
        "call span, no subscriber",
        measure(span.layer(leaf.clone()), rounds),
    );
    row(
        "call and attempt span, no subscriber",
        measure(span.layer(attempt.layer(leaf.clone())), rounds),
    );
    row(
        "call and attempt span, no subscriber, metrics",
        measure(measured.layer(attempt.layer(leaf.clone())), rounds),
    );
    let rare = CallSpanLayer::new().with_sampling(Sampling::never());
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        row(
            "call and attempt span, registry, left out",
            measure(rare.layer(attempt.layer(leaf.clone())), rounds),
        );
        row(
            "call and attempt span, registry",
            measure(span.layer(attempt.layer(leaf.clone())), rounds),
        );
        row(
            "call and attempt span, registry, metrics",
            measure(measured.layer(attempt.layer(leaf.clone())), rounds),
        );
    });
}
