//! What telemetry costs a call: nanoseconds of a call span with an attempt span in it, over a service
//! that answers at once.
//!
//! `cargo bench -p tollgate-telemetry --features otlp --bench telemetry_cost`. Each row is the processor
//! time of the calling thread, so that what else the machine does, and the thread that exports, do not
//! count; the last column is that of the whole process, where the exporting thread is. It is the median
//! of several rounds. Spans go to a collector on a socket of this machine that reads and forgets.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and may panic"
)]

use std::future::Future;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Span as _, Tracer, TracerProvider};
use opentelemetry::{Context as OtelContext, KeyValue};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tollgate_core::{ToolCall, ToolError, ToolOutput};
use tollgate_telemetry::export::{Exporter, OtlpConfig};
use tollgate_telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics, Sampling};
use tollgate_testkit::{AtOnce, call, tool};
use tower::{Layer, Service};
use tracing_subscriber::layer::SubscriberExt;

/// Calls per round.
const CALLS: u32 = 20_000;
const ROUNDS: usize = 15;

fn main() {
    // `cargo test --benches` only proves that it runs
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (calls, rounds) = if is_bench { (CALLS, ROUNDS) } else { (10, 1) };
    let bench = Bench { calls, rounds };
    let leaf = AtOnce::new(ToolOutput::text("ok"));
    println!("| ns of processor time per call | thread | process |");
    println!("| --- | ---: | ---: |");
    let alone = bench.row("the service alone", leaf.clone(), 0.0);
    let layers = |sampling: Sampling, metrics: Option<Arc<Metrics>>| {
        let mut calls = CallSpanLayer::new().with_sampling(sampling);
        if let Some(metrics) = metrics {
            calls = calls.with_metrics(metrics);
        }
        calls.layer(AttemptSpanLayer::new().layer(leaf.clone()))
    };
    bench.row(
        "off: no subscriber",
        layers(Sampling::always(), None),
        alone,
    );
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let row = "a registry and nothing else";
        bench.row(row, layers(Sampling::always(), None), alone);
    });

    let endpoint = sink();
    let exporter = || -> Exporter {
        OtlpConfig::new(&endpoint)
            .unwrap()
            .with_queue(1 << 16)
            .start()
            .unwrap()
    };
    for (share, percent) in [(0.0, "0"), (0.01, "1"), (1.0, "100")] {
        for is_measured in [false, true] {
            let exporter = exporter();
            let provider = SdkMeterProvider::builder()
                .with_reader(exporter.metric_reader().unwrap().unwrap())
                .build();
            let metrics = Arc::new(Metrics::new(&provider.meter("bench")));
            let subscriber = tracing_subscriber::registry().with(exporter.layer());
            tracing::subscriber::with_default(subscriber, || {
                let sampling = Sampling::ratio(share).unwrap();
                let with = if is_measured { ", and metrics" } else { "" };
                let row = format!("exporting {percent} % of calls{with}");
                bench.row(
                    &row,
                    layers(sampling, is_measured.then_some(metrics)),
                    alone,
                );
            });
            let _ = provider.shutdown();
        }
    }

    // the usual way: every span is built, and the SDK throws 99 of 100 away
    let usual = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(
            0.01,
        ))))
        .build();
    let subscriber = tracing_subscriber::registry()
        .with(tracing_opentelemetry::layer().with_tracer(usual.tracer("bench")));
    tracing::subscriber::with_default(subscriber, || {
        let row = "peer: the same spans, tracing-opentelemetry, its sampler at 1 %";
        bench.row(row, layers(Sampling::always(), None), alone);
    });
    let tracer = usual.tracer("bench");
    bench.time(
        "peer: OpenTelemetry's API directly, two spans, its sampler at 1 %",
        alone,
        || {
            let mut outer = tracer.start("tools/call read");
            if outer.is_recording() {
                outer.set_attribute(KeyValue::new("gen_ai.tool.name", "read"));
            }
            let around = OtelContext::new().with_value(0_u8);
            let mut inner = tracer.start_with_context("attempt", &around);
            if inner.is_recording() {
                inner.set_attribute(KeyValue::new("tollgate.attempt.number", 1));
            }
            inner.end();
            outer.end();
        },
    );
}

struct Bench {
    calls: u32,
    rounds: usize,
}

impl Bench {
    /// Prints what a call of a service costs above `alone`, and returns what it costs in all.
    fn row<S>(&self, name: &str, mut service: S, alone: f64) -> f64
    where
        S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
    {
        let request = call(&tool("read").read_only().build(), json!({"id": 1}));
        self.time(name, alone, || {
            let mut cx = Context::from_waker(Waker::noop());
            let answer = pin!(service.call(request.clone())).poll(&mut cx);
            let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
        })
    }

    fn time(&self, name: &str, alone: f64, mut run: impl FnMut()) -> f64 {
        (0..self.calls).for_each(|_| run());
        let mut rounds: Vec<_> = (0..self.rounds)
            .map(|_| {
                let start = (now(ClockId::ThreadCPUTime), now(ClockId::ProcessCPUTime));
                (0..self.calls).for_each(|_| run());
                let per_call = |start: Duration, clock| {
                    (now(clock) - start).as_nanos() as f64 / f64::from(self.calls)
                };
                (
                    per_call(start.0, ClockId::ThreadCPUTime),
                    per_call(start.1, ClockId::ProcessCPUTime),
                )
            })
            .collect();
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (thread, process) = rounds[rounds.len() / 2];
        println!(
            "| {name} | {:.1} | {:.1} |",
            thread - alone,
            process - alone
        );
        thread
    }
}

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// A collector that answers 200 to everything, and forgets it.
fn sink() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || swallow(stream));
        }
    });
    format!("http://{address}")
}

/// Reads requests by their length, and nothing more of them.
fn swallow(mut stream: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&part[..read]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))?
            .trim()
            .parse::<usize>()
            .ok()?;
        while bytes.len() < end + length {
            let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&part[..read]);
        }
        bytes.drain(..end + length);
        let answer =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).ok()?;
    }
}
