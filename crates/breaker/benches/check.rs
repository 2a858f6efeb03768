//! What a closed breaker costs: alone, looked up in its set, and as a layer; with one thread, and
//! while a second does the same.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callward_breaker::{Breaker, BreakerConfig, BreakerSet, Circuit};
use callward_core::{ServerId, ToolCall, ToolError, ToolName, ToolOutput};
use callward_testkit::{call, tool};
use criterion::Criterion;
use futures_util::FutureExt;
use tower_service::Service;

/// Answers at once, and counts nothing.
#[derive(Clone)]
struct Instantly(ToolOutput);

impl Service<ToolCall> for Instantly {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = std::future::Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), ToolError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        std::future::ready(Ok(self.0.clone()))
    }
}

fn check(circuit: &Circuit) {
    if let Ok(permit) = circuit.admit_ref() {
        permit.succeed();
    }
}

fn allow_and_succeed(circuit: &Arc<Circuit>) {
    if let Ok(permit) = circuit.clone().admit() {
        permit.succeed();
    }
}

/// Measures `work`, first alone, then while another thread does it too.
fn measure(criterion: &mut Criterion, name: &str, work: impl Fn() + Sync) {
    criterion.bench_function(&format!("{name}, one thread"), |b| b.iter(&work));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                work();
            }
        });
        criterion.bench_function(&format!("{name}, two threads"), |b| b.iter(&work));
        stop.store(true, Ordering::Relaxed);
    });
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    let server = ServerId::new("orders")?;
    let name = ToolName::new("get_order")?;

    let circuit = Arc::new(Circuit::new("x", BreakerConfig::default())?);
    measure(&mut criterion, "circuit, check + success", || {
        check(black_box(&circuit));
    });
    measure(&mut criterion, "circuit, owned permit + success", || {
        allow_and_succeed(black_box(&circuit));
    });

    let set = BreakerSet::default();
    measure(&mut criterion, "set, look up + allow + success", || {
        allow_and_succeed(&set.circuit(black_box(&server), black_box(&name)));
    });
    measure(&mut criterion, "set, is_available", || {
        black_box(set.is_available(black_box(&server), black_box(&name)));
    });

    let get_order = call(
        &tool("get_order").read_only().build(),
        serde_json::json!({}),
    );
    let bare = Instantly(ToolOutput::text("x"));
    measure(&mut criterion, "bare service, one call", || {
        black_box(bare.clone().call(get_order.clone()).now_or_never());
    });
    let of_tool = Breaker::new(bare.clone(), set.clone(), server.clone());
    measure(&mut criterion, "breaker of the tool around it", || {
        black_box(of_tool.clone().call(get_order.clone()).now_or_never());
    });
    let both = Breaker::of_server(of_tool, &set, server);
    measure(&mut criterion, "and of the server around both", || {
        black_box(both.clone().call(get_order.clone()).now_or_never());
    });
    criterion.final_summary();
    Ok(())
}
