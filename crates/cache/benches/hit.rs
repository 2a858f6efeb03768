//! What a hit costs: the layer around a ready no-op, next to moka alone and to the no-op alone.
//!
//! `cargo bench -p tollgate-cache`. One thread, 1,024 distinct calls of 200 bytes of arguments in
//! turn, all of them in the cache; the median of several passes, nanoseconds a call.
#![expect(clippy::print_stdout, reason = "the table is what a bench is for")]

use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;
use tollgate_cache::{CacheLayer, Entry, MokaStore, Store};
use tollgate_core::{FingerprintKey, ToolCall, ToolError, ToolOutput};
use tollgate_testkit::tool;
use tower::{Layer, Service};

const CALLS: usize = 1024;
const ROUNDS: usize = 200;
const PASSES: usize = 9;

/// A service that answers at once with the same output.
#[derive(Clone)]
struct NoOp(ToolOutput);

impl Service<ToolCall> for NoOp {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        black_box(&call);
        ready(Ok(self.0.clone()))
    }
}

/// Calls once; panics if the answer is not there at once.
fn answer<S>(service: &mut S, call: &ToolCall) -> ToolOutput
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolError>,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    match pin!(service.call(call.clone())).poll(&mut cx) {
        Poll::Ready(Ok(output)) => output,
        other => panic!("expected an answer at once, not {other:?}"),
    }
}

/// Prints the median of several passes over all calls, in nanoseconds a call.
fn measure(name: &str, mut one: impl FnMut(usize)) {
    let mut passes: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            for i in 0..CALLS * ROUNDS {
                // a stride, so that neighbours in memory are not neighbours in time
                one(i * 389 % CALLS);
            }
            let total: Duration = start.elapsed();
            total.as_secs_f64() * 1e9 / (CALLS * ROUNDS) as f64
        })
        .collect();
    passes.sort_by(f64::total_cmp);
    println!("{name:<44}{:>8.0} ns", passes[PASSES / 2]);
}

fn main() {
    let output = ToolOutput::text("x".repeat(500));
    let get = tool("get_order").read_only().build();
    let calls: Vec<ToolCall> = (0..CALLS)
        .map(|id| {
            let note = "n".repeat(140);
            let arguments =
                format!(r#"{{"id":{id:>6},"tenant":"acme","expand":["a","b"],"note":"{note}"}}"#);
            ToolCall::new(get.clone(), arguments)
        })
        .collect();
    println!("arguments of {} bytes", calls[0].arguments().len());

    let mut no_op = NoOp(output.clone());
    measure("no-op service alone", |i| {
        black_box(answer(&mut no_op, &calls[i]));
    });

    let key = FingerprintKey::new(1, 2);
    measure("fingerprint of the arguments alone", |i| {
        black_box(key.json(calls[i].arguments()).is_ok());
    });

    let moka = MokaStore::new(64 << 20);
    let keys: Vec<u128> = (0..CALLS)
        .map(|i| key.bytes(&i.to_le_bytes()).as_u128())
        .collect();
    for key in &keys {
        let entry = Entry::new(output.clone(), Duration::from_secs(300), Instant::now());
        moka.put(*key, entry);
    }
    assert_eq!(moka.usage().entries, CALLS as u64);
    measure("moka look-up alone", |i| {
        black_box(moka.get(keys[i]).is_some());
    });

    let plain: moka::sync::Cache<u128, Arc<ToolOutput>> = moka::sync::Cache::new(1 << 20);
    for key in &keys {
        plain.insert(*key, Arc::new(output.clone()));
    }
    measure("moka look-up without expiry and weight", |i| {
        black_box(plain.get(&keys[i]).is_some());
    });

    let layer = CacheLayer::default();
    let mut cache = layer.layer(NoOp(output));
    for call in &calls {
        black_box(answer(&mut cache, call));
    }
    let before = layer.handle().stats();
    assert_eq!(before.entries, CALLS as u64);
    measure("hit through the layer", |i| {
        black_box(answer(&mut cache, &calls[i]));
    });
    let hits = layer.handle().stats().hits - before.hits;
    assert_eq!(hits as usize, CALLS * ROUNDS * PASSES);
}
