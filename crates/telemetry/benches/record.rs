//! What counting and measuring a call costs: what the instruments take, beside the SDK's own ways.
//!
//! Prints nanoseconds per call, as the fastest of many short rounds: what else the machine does can
//! only add. With two threads, both call the same tool all the time, and each row is what one call
//! takes one of them.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};

use callward_core::{
    AttemptRecord, CacheStatus, Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolOutput,
};
use callward_telemetry::{CallSpanLayer, Metrics};
use callward_testkit::{call, tool};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::{ManualReader, SdkMeterProvider};
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, Service};

/// Answers at once, and writes into the record what the layers of a stack would.
#[derive(Clone)]
struct Answers {
    cache: CacheStatus,
    server: Option<ServerId>,
    result: Result<ToolOutput, ToolError>,
}

impl Service<ToolCall> for Answers {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        if let Some(record) = call.record() {
            record.set_cache(self.cache);
            if let Some(server) = &self.server {
                record.start_attempt();
                let error = self.result.as_ref().err().map(ToolError::kind);
                let took = std::time::Duration::from_micros(20);
                let ended = AttemptRecord::new(Some(server.clone()), error, took);
                record.end_attempt(call.attempt(), ended);
            }
        }
        ready(self.result.clone())
    }
}

/// Calls per round.
const CALLS: u32 = 500;

/// Returns the nanoseconds of one act in the fastest round, in each of so many threads that act at the
/// same time.
fn measure<A: FnMut()>(threads: usize, rounds: u32, make: impl Fn() -> A + Sync) -> f64 {
    let gate = Barrier::new(threads);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut act = make();
                    let mut best = f64::INFINITY;
                    for _ in 0..rounds {
                        gate.wait();
                        let start = Instant::now();
                        (0..CALLS).for_each(|_| act());
                        let took = start.elapsed().as_nanos() as f64 / f64::from(CALLS);
                        best = best.min(took);
                    }
                    best
                })
            })
            .collect();
        let best = running.into_iter().filter_map(|thread| thread.join().ok());
        best.fold(0.0, f64::max)
    })
}

fn calls<S>(service: &S, request: &ToolCall) -> impl FnMut() + use<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError> + Clone,
{
    let (mut service, request) = (service.clone(), request.clone());
    move || {
        let mut cx = Context::from_waker(Waker::noop());
        let answer = pin!(service.call(request.clone())).poll(&mut cx);
        let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
    }
}

fn main() {
    // `cargo test --benches` only proves that it runs
    let rounds = if std::env::args().any(|arg| arg == "--bench") {
        400
    } else {
        1
    };
    let provider = || {
        SdkMeterProvider::builder()
            .with_reader(ManualReader::builder().build())
            .build()
    };
    let (ours, theirs) = (provider(), provider());
    let layer = CallSpanLayer::new().with_metrics(Arc::new(Metrics::new(&ours.meter("bench"))));
    let read = tool("read_order").read_only().build();
    let request = call(&read, json!({"id": 1}));

    let server = ServerId::new("orders-primary").ok();
    let kinds = [
        ("hit", CacheStatus::Hit, None, Ok(ToolOutput::text("ok"))),
        (
            "miss",
            CacheStatus::Miss,
            server.clone(),
            Ok(ToolOutput::text("ok")),
        ),
        (
            "failure",
            CacheStatus::Miss,
            server,
            Err(ToolError::new(
                ErrorKind::Timeout,
                Delivery::Unknown,
                "no answer",
            )),
        ),
    ];
    println!("| ns per call | one thread | two threads |");
    println!("| --- | --- | --- |");
    let row = |name: &str, one: f64, two: f64| println!("| {name} | {one:.0} | {two:.0} |");
    for (name, cache, server, result) in kinds {
        let bare = Answers {
            cache,
            server,
            result,
        };
        let measured = layer.layer(bare.clone());
        let of = |threads| {
            let with = measure(threads, rounds, || calls(&measured, &request));
            with - measure(threads, rounds, || calls(&bare, &request))
        };
        row(&format!("a {name}, all its instruments"), of(1), of(2));
    }
    let clock = |threads| {
        measure(threads, rounds, || {
            || {
                let _ = black_box(Instant::now().elapsed());
            }
        })
    };
    row("two looks at the clock", clock(1), clock(2));
    sdk(&theirs.meter("bench"), rounds, row);
}

/// The SDK's ways to record one value of a histogram.
fn sdk(meter: &Meter, rounds: u32, row: impl Fn(&str, f64, f64)) {
    let histogram = meter.f64_histogram("a").build();
    let attributes = || {
        [
            KeyValue::new("mcp.method.name", "tools/call"),
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", "read_order".to_owned()),
            KeyValue::new("callward.server_set", "test".to_owned()),
            KeyValue::new("callward.cache", "hit"),
        ]
    };
    let known = attributes();
    #[cfg(feature = "bound")]
    {
        let of = |threads| {
            measure(threads, rounds, || {
                let bound = histogram.bind(&known);
                move || bound.record(black_box(2e-6))
            })
        };
        row("the SDK, one value, bound", of(1), of(2));
    }
    let of = |threads| {
        measure(threads, rounds, || {
            || histogram.record(black_box(2e-6), &known)
        })
    };
    row("the SDK, one value, attributes kept", of(1), of(2));
    let of = |threads| {
        measure(threads, rounds, || {
            || histogram.record(black_box(2e-6), &attributes())
        })
    };
    row("the SDK, one value, attributes made", of(1), of(2));
}
