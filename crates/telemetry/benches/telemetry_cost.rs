//! What telemetry costs a call: nanoseconds of a call span with an attempt span in it, over a service
//! that answers at once.
//!
//! `cargo bench -p tollgate-telemetry --features otlp,bound --bench telemetry_cost`, with the features
//! that the gateway has; a word after `--` leaves only the rows that have it in their name. Each row is
//! processor time above that of the service alone. The first column is that of the calling thread, the
//! median of several rounds. The second is that of the whole process, where the thread that exports is:
//! of all calls there were, and of the end, when what still waits is sent. Spans go to a collector in a
//! process of its own that reads and forgets.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and may panic"
)]

use std::future::Future;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::{Pin, pin};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Span as _, Tracer, TracerProvider};
use opentelemetry::{Context as OtelContext, KeyValue};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use rustix::time::{ClockId, clock_gettime};
use tollgate_core::{Tool, ToolCall, ToolError, ToolOutput, ToolService};
use tollgate_telemetry::export::OtlpConfig;
use tollgate_telemetry::{AttemptSpanLayer, CallSpanLayer, Metrics, Sampling};
use tollgate_testkit::{AtOnce, tool};
use tower::{Layer, Service};
use tracing_subscriber::layer::SubscriberExt;

/// Calls per round.
const CALLS: u32 = 20_000;
const ROUNDS: u32 = 15;
/// What starts the collector, in place of the bench.
const COLLECTOR: &str = "--collector";

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.iter().any(|arg| arg == COLLECTOR) {
        return collect();
    }
    // `cargo test --benches` only proves that it runs
    let is_bench = arguments.iter().any(|arg| arg == "--bench");
    let (calls, rounds) = if is_bench { (CALLS, ROUNDS) } else { (10, 1) };
    let only = arguments.into_iter().find(|arg| !arg.starts_with("--"));
    let mut bench = Bench {
        calls,
        rounds,
        only,
        alone: 0.0,
    };
    let leaf = Apart(AtOnce::new(ToolOutput::text("ok")));
    println!("| ns of processor time per call | thread | process |");
    println!("| --- | ---: | ---: |");
    bench.alone = bench.service("the service alone", leaf.clone(), || ());
    let layers = |sampling: Sampling, metrics: Option<Arc<Metrics>>| {
        let mut calls = CallSpanLayer::new().with_sampling(sampling);
        if let Some(metrics) = metrics {
            calls = calls.with_metrics(metrics);
        }
        calls.layer(AttemptSpanLayer::new().layer(leaf.clone()))
    };
    let all = || layers(Sampling::always(), None);
    bench.row("off: no subscriber", all(), || ());
    let row = "off: its call span alone";
    bench.row(row, CallSpanLayer::new().layer(leaf.clone()), || ());
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        bench.row("a registry and nothing else", all(), || ());
    });

    let collector = Collector::start();
    for (share, percent) in [(0.0, "0"), (0.01, "1"), (1.0, "100")] {
        for is_measured in [false, true] {
            let with = if is_measured { ", and metrics" } else { "" };
            let row = format!("exporting {percent} % of calls{with}");
            if !bench.is_wanted(&row) {
                continue;
            }
            let config = OtlpConfig::new(&collector.endpoint).unwrap();
            let exporter = config.with_queue(1 << 16).start().unwrap();
            let provider = SdkMeterProvider::builder()
                .with_reader(exporter.metric_reader().unwrap().unwrap())
                .build();
            let metrics = Arc::new(Metrics::new(&provider.meter("bench")));
            let metrics = is_measured.then_some(metrics);
            let subscriber = tracing_subscriber::registry().with(exporter.layer());
            tracing::subscriber::with_default(subscriber, || {
                let sampling = Sampling::ratio(share).unwrap();
                bench.row(&row, layers(sampling, metrics), move || {
                    let _ = provider.shutdown();
                    drop(exporter);
                });
            });
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
        bench.row(row, all(), || ());
    });
    let tracer = usual.tracer("bench");
    let two_spans = || {
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
    };
    let row = "peer: OpenTelemetry's API directly, two spans, its sampler at 1 %";
    if bench.is_wanted(row) {
        bench.time(row, two_spans, || ());
    }
}

/// A service and its future that the compiler leaves functions of their own, as it does with real ones.
/// One that answers at once would melt into the loop that measures it, and whatever stands around it
/// would be charged with a call and its moves that every real service has.
#[derive(Clone)]
struct Apart<S>(S);

impl<S> Service<ToolCall> for Apart<S>
where
    S: ToolService<Future: Unpin>,
{
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Apart<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.0.poll_ready(cx)
    }

    #[inline(never)]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        Apart(self.0.call(call))
    }
}

impl<F: Future + Unpin> Future for Apart<F> {
    type Output = F::Output;

    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// Makes a call that nobody else holds, as callers do: what a layer sets is then written in place.
fn call(tool: &Arc<Tool>) -> ToolCall {
    ToolCall::new(tool.clone(), &br#"{"id":1}"#[..])
}

struct Bench {
    calls: u32,
    rounds: u32,
    /// What the names of rows have in them that are wanted.
    only: Option<String>,
    /// What the service alone costs.
    alone: f64,
}

impl Bench {
    fn is_wanted(&self, row: &str) -> bool {
        self.only.as_ref().is_none_or(|only| row.contains(only))
    }

    /// Prints what a call of a service costs, if anybody wants to know. `end` is what is left to do for
    /// the calls that were made.
    fn row<S>(&self, name: &str, service: S, end: impl FnOnce())
    where
        S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
    {
        if self.is_wanted(name) {
            self.service(name, service, end);
        }
    }

    /// Prints what a call of a service costs, and returns it.
    fn service<S>(&self, name: &str, mut service: S, end: impl FnOnce()) -> f64
    where
        S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
    {
        let tool = tool("read").read_only().build();
        let one = || {
            let mut cx = Context::from_waker(Waker::noop());
            let answer = pin!(service.call(call(&tool))).poll(&mut cx);
            let _ = black_box(answer.map(|result| result.is_ok_and(|o| !o.is_error())));
        };
        self.time(name, one, end)
    }

    fn time(&self, name: &str, mut run: impl FnMut(), end: impl FnOnce()) -> f64 {
        let since = |start: Duration, clock| (now(clock) - start).as_nanos() as f64;
        let begun = now(ClockId::ProcessCPUTime);
        // one round before those that count: caches fill, and series are made
        (0..self.calls).for_each(|_| run());
        let mut rounds: Vec<_> = (0..self.rounds)
            .map(|_| {
                let start = now(ClockId::ThreadCPUTime);
                (0..self.calls).for_each(|_| run());
                since(start, ClockId::ThreadCPUTime) / f64::from(self.calls)
            })
            .collect();
        end();
        let calls = f64::from(self.calls * (self.rounds + 1));
        let process = since(begun, ClockId::ProcessCPUTime) / calls;
        rounds.sort_by(f64::total_cmp);
        let thread = rounds[rounds.len() / 2];
        let above = |ns: f64| ns - self.alone;
        println!("| {name} | {:.1} | {:.1} |", above(thread), above(process));
        thread
    }
}

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// This program once more, as a collector. Dropped, it ends.
struct Collector {
    process: Child,
    endpoint: String,
}

impl Collector {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(COLLECTOR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut told = BufReader::new(process.stdout.take().unwrap());
        told.read_line(&mut address).unwrap();
        Self {
            process,
            endpoint: format!("http://{}", address.trim()),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Says where it listens, answers 200 to everything, and forgets it.
fn collect() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || swallow(stream));
        }
    });
    // it ends with the bench, however that ends
    let _ = std::io::stdin().read(&mut [0]);
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
