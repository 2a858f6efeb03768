//! What the cache costs: each way a call can go, next to the bare parts, in one run.
//!
//! `cargo bench -p tollgate-cache --features lean --bench cache_cost`, after `--` with `--json`
//! for machines, with `--calls N` for more or fewer distinct ones than 1,024, and with parts of names
//! for some of the rows. Calls with 200 bytes of
//! arguments and a result of 500, around a service that answers at once. Calls are made before the
//! clock starts: making one is its caller's affair; dropping it is part of the row. All rows take turns, pass by pass,
//! so that a change of the machine's load meets all of them; shown is the median run, in
//! nanoseconds a call. "Times" is the row over bare moka plus bare SipHash with as many threads.
#![expect(clippy::print_stdout, reason = "the table is what a bench is for")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a bench that cannot run should say so at once, and its numbers are small"
)]

use std::future::{Future, Ready, ready};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use serde_json::json;
use siphasher::sip128::{Hasher128, SipHasher13};
use tokio::time::Instant;
use tollgate_cache::{CacheConfig, CacheHandle, CacheLayer, Entry, MokaStore, Store};
use tollgate_core::{ReplicaSetId, ToolCall, ToolError, ToolOutput};
use tollgate_testkit::tool;
use tower::{Layer, Service};

/// How many distinct calls there are if `--calls` does not say.
const CALLS: usize = 1024;
const PASSES: usize = 25;
/// Each pass warms up with all calls, and then times so many runs of so many calls: runs so short
/// that a busy machine takes the processor away in few of them, which the median leaves out.
const RUNS: usize = 8;
const RUN: usize = 256;

/// Returns how many distinct calls there are. What a hit costs depends on it: the memory that a few
/// calls take stays in the processor's nearest cache, that of many does not.
fn calls_asked() -> usize {
    static ASKED: OnceLock<usize> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--calls");
        let asked = arguments.nth(1);
        asked.map_or(CALLS, |asked| {
            asked.parse().expect("--calls takes a number")
        })
    })
}

/// A service that answers at once with the same output, or as soon as its gate is open.
#[derive(Clone)]
struct Leaf {
    output: ToolOutput,
    gate: Option<Arc<AtomicBool>>,
}

/// The answer of a [`Leaf`] with a gate. Polled by hand, so nobody needs to be woken.
struct Gated(ToolOutput, Arc<AtomicBool>);

impl Future for Gated {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.1.load(Ordering::Relaxed) {
            Poll::Ready(Ok(self.0.clone()))
        } else {
            Poll::Pending
        }
    }
}

impl Service<ToolCall> for Leaf {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = futures_util::future::Either<Ready<Result<ToolOutput, ToolError>>, Gated>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        black_box(&call);
        let output = self.output.clone();
        match &self.gate {
            None => futures_util::future::Either::Left(ready(Ok(output))),
            Some(gate) => futures_util::future::Either::Right(Gated(output, gate.clone())),
        }
    }
}

/// Takes the key as its own hash, as the stores do.
#[derive(Clone, Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

fn sip(bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new_with_keys(1, 2);
    hasher.write(bytes);
    hasher.finish128().into()
}

/// Calls once. The answer is there at once, unless another thread runs the same call.
fn answer<S>(service: &mut S, call: ToolCall)
where
    S: Service<ToolCall, Response = ToolOutput>,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut answer = pin!(service.call(call));
    loop {
        match answer.as_mut().poll(&mut cx) {
            Poll::Ready(Ok(output)) => return drop(black_box(output)),
            Poll::Ready(Err(_)) => panic!("the service never fails"),
            Poll::Pending => thread::yield_now(),
        }
    }
}

/// One thing to measure: makes, for each thread, what does it once with the call of a number.
struct Row {
    name: &'static str,
    /// Whether it is done with calls.
    calls: bool,
    make: Box<dyn Fn() -> Once>,
    allocated: u64,
    /// Nanoseconds a call of each run, with one thread and with two.
    runs: [Vec<f64>; 2],
}

/// Does it once with the call of each of these numbers; returns how long that took.
type Once = Box<dyn FnMut(&[usize]) -> Duration + Send>;

/// Does something with numbers alone.
fn timed(mut once: impl FnMut(usize) + Send + 'static) -> Once {
    Box::new(move |numbers| {
        let start = Instant::now();
        numbers.iter().for_each(|number| once(*number));
        start.elapsed()
    })
}

/// Does something with calls that were made before.
fn timed_with(calls: Arc<[ToolCall]>, mut once: impl FnMut(ToolCall) + Send + 'static) -> Once {
    Box::new(move |numbers| {
        let of = |number: &usize| calls[number % calls.len()].clone();
        #[expect(clippy::needless_collect, reason = "made before the clock starts")]
        let made: Vec<ToolCall> = numbers.iter().map(of).collect();
        let start = Instant::now();
        made.into_iter().for_each(&mut once);
        start.elapsed()
    })
}

impl Row {
    fn new(name: &'static str, make: impl Fn() -> Once + 'static) -> Self {
        Self {
            name,
            calls: name.starts_with("layer") || name.contains(": ") || name.starts_with("service"),
            make: Box::new(make),
            allocated: 0,
            runs: [Vec::new(), Vec::new()],
        }
    }

    /// Runs one pass on so many threads.
    fn pass(&mut self, threads: usize) {
        let barrier = Arc::new(Barrier::new(threads));
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let (mut once, barrier) = ((self.make)(), barrier.clone());
                thread::spawn(move || {
                    // starting elsewhere, so that threads do not walk in step
                    let from = number * 511;
                    // a stride, so that neighbours in memory are not neighbours in time
                    let mut numbers = (from..).map(|i| i * 389 % calls_asked());
                    let mut next = |count| numbers.by_ref().take(count).collect::<Vec<_>>();
                    once(&next(calls_asked()));
                    barrier.wait();
                    let run = || once(&next(RUN)).as_secs_f64() * 1e9 / RUN as f64;
                    std::iter::repeat_with(run).take(RUNS).collect::<Vec<_>>()
                })
            })
            .collect();
        for run in running {
            self.runs[threads - 1].extend(run.join().unwrap());
        }
    }

    /// Counts what one call allocates, on average over all calls.
    fn count(&mut self) {
        let mut once = (self.make)();
        let numbers: Vec<usize> = (0..calls_asked()).collect();
        once(&numbers);
        // less what the list of the calls takes, which is there before the clock starts
        let info = allocation_counter::measure(|| {
            once(&numbers);
        });
        let made = if self.calls {
            calls_asked() * size_of::<ToolCall>()
        } else {
            0
        };
        self.allocated = info.bytes_total.saturating_sub(made as u64) / calls_asked() as u64;
    }

    fn median(&self, threads: usize) -> f64 {
        let mut runs = self.runs[threads - 1].clone();
        runs.sort_by(f64::total_cmp);
        runs[runs.len() / 2]
    }
}

fn calls(name: &str) -> Vec<ToolCall> {
    let get = tool(name).read_only().build();
    let note = "n".repeat(140);
    (0..calls_asked())
        .map(|id| {
            let arguments =
                format!(r#"{{"id":{id:>6},"tenant":"acme","expand":["a","b"],"note":"{note}"}}"#);
            ToolCall::new(get.clone(), arguments)
        })
        .collect()
}

fn layer_of(lean: bool) -> CacheLayer {
    let config = CacheConfig::default();
    if lean {
        #[cfg(feature = "lean")]
        return CacheLayer::with_store(config, Arc::new(tollgate_cache::LeanStore::new(64 << 20)));
    }
    CacheLayer::with_store(config, Arc::new(MokaStore::new(64 << 20)))
}

fn main() {
    let calls: Arc<[ToolCall]> = calls("get_order").into();
    let write = ToolCall::new(tool("add_order").build(), calls[0].arguments().to_vec());
    let set: ReplicaSetId = calls[0].tool().set().clone();
    let output = ToolOutput::text("x".repeat(500));
    let leaf = Leaf {
        output: output.clone(),
        gate: None,
    };
    let keys: Arc<[u128]> = calls.iter().map(|call| sip(call.arguments())).collect();
    let mut rows = vec![bare_service(&leaf, &calls), bare_sip(&calls)];

    let moka: moka::sync::Cache<u128, Arc<ToolOutput>, BuildHasherDefault<Plain>> =
        moka::sync::Cache::builder()
            .max_capacity(1 << 16)
            .build_with_hasher(BuildHasherDefault::default());
    for key in keys.iter() {
        moka.insert(*key, Arc::new(output.clone()));
    }
    let found = keys.clone();
    rows.push(Row::new("bare moka get", move || {
        let (moka, keys) = (moka.clone(), found.clone());
        timed(move |i| drop(black_box(moka.get(&keys[i % calls_asked()]).unwrap())))
    }));

    #[cfg(feature = "lean")]
    {
        let quick: Arc<quick_cache::sync::Cache<u128, Arc<ToolOutput>, _, _>> =
            Arc::new(quick_cache::sync::Cache::with(
                1 << 16,
                1 << 16,
                quick_cache::UnitWeighter,
                BuildHasherDefault::<Plain>::default(),
                quick_cache::sync::DefaultLifecycle::default(),
            ));
        for key in keys.iter() {
            quick.insert(*key, Arc::new(output.clone()));
        }
        let found = keys.clone();
        rows.push(Row::new("bare quick_cache get", move || {
            let (quick, keys) = (quick.clone(), found.clone());
            timed(move |i| drop(black_box(quick.get(&keys[i % calls_asked()]).unwrap())))
        }));
    }

    rows.push(store_get(&keys, &output));
    rows.push(other_layer(
        "tower-resilience: hit",
        &leaf,
        &calls,
        calls_asked(),
    ));
    rows.push(other_layer(
        "tower-resilience: miss",
        &leaf,
        &calls,
        calls_asked() / 2,
    ));
    for (lean, hit, miss) in [
        (false, "layer on moka: hit", "layer on moka: miss"),
        (
            true,
            "layer on quick_cache: hit",
            "layer on quick_cache: miss",
        ),
    ] {
        if lean && !cfg!(feature = "lean") {
            continue;
        }
        rows.push(hits(hit, lean, &leaf, &calls));
        rows.push(misses(miss, lean, &leaf, &calls, &set));
    }
    rows.push(joined(&leaf, &calls));
    rows.push(invalidations(&leaf, &write));

    let asked: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<&String> = asked
        .iter()
        .filter(|part| !part.starts_with("--") && part.parse::<usize>().is_err())
        .collect();
    rows.retain(|row| {
        let is_asked = asked.iter().any(|part| row.name.contains(*part));
        asked.is_empty() || is_asked || row.name.starts_with("bare ")
    });
    for _ in 0..PASSES {
        for row in &mut rows {
            row.pass(1);
            row.pass(2);
        }
    }
    rows.iter_mut().for_each(Row::count);
    report(&rows);
}

fn bare_service(leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let (leaf, calls) = (leaf.clone(), calls.clone());
    Row::new("service alone", move || {
        let mut leaf = leaf.clone();
        timed_with(calls.clone(), move |call| answer(&mut leaf, call))
    })
}

fn bare_sip(calls: &Arc<[ToolCall]>) -> Row {
    let calls = calls.clone();
    Row::new("bare SipHash-1-3-128 of 200 bytes", move || {
        let calls = calls.clone();
        timed(move |i| {
            black_box(sip(black_box(calls[i % calls_asked()].arguments())));
        })
    })
}

fn store_get(keys: &Arc<[u128]>, output: &ToolOutput) -> Row {
    let store = Arc::new(MokaStore::new(64 << 20));
    for key in keys.iter() {
        let entry = Entry::new(output.clone(), Duration::from_secs(300), Instant::now());
        store.put(*key, entry);
    }
    let keys = keys.clone();
    Row::new("our store on moka: get", move || {
        let (store, keys) = (store.clone(), keys.clone());
        timed(move |i| drop(black_box(store.get(keys[i % calls_asked()]).unwrap())))
    })
}

/// The cache layer of tower-resilience. With room for half the calls, each one is a miss.
fn other_layer(name: &'static str, leaf: &Leaf, calls: &Arc<[ToolCall]>, room: usize) -> Row {
    let layer = tower_resilience_cache::SharedCacheLayer::builder()
        .max_size(room)
        .ttl(Duration::from_secs(300))
        .key_extractor(|call: &ToolCall| sip(call.arguments()))
        .build()
        .unwrap();
    let mut cache = layer.layer(leaf.clone());
    for i in 0..calls_asked() {
        answer(&mut cache, calls[i * 389 % calls_asked()].clone());
    }
    let calls = calls.clone();
    Row::new(name, move || {
        let mut cache = cache.clone();
        timed_with(calls.clone(), move |call| answer(&mut cache, call))
    })
}

fn hits(name: &'static str, lean: bool, leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let layer = layer_of(lean);
    let mut cache = layer.layer(leaf.clone());
    for call in calls.iter() {
        answer(&mut cache, call.clone());
    }
    let handle: CacheHandle = layer.handle();
    assert_eq!(
        handle.stats().entries,
        calls_asked() as u64,
        "all calls are kept"
    );
    let calls = calls.clone();
    Row::new(name, move || {
        let mut cache = cache.clone();
        timed_with(calls.clone(), move |call| answer(&mut cache, call))
    })
}

/// Each call comes in an epoch of its own: it is sent, stored, and what is out of reach evicted.
fn misses(
    name: &'static str,
    lean: bool,
    leaf: &Leaf,
    calls: &Arc<[ToolCall]>,
    set: &ReplicaSetId,
) -> Row {
    let layer = layer_of(lean);
    let cache = layer.layer(leaf.clone());
    let handle = layer.handle();
    let (calls, set) = (calls.clone(), set.clone());
    Row::new(name, move || {
        let (mut cache, handle, set) = (cache.clone(), handle.clone(), set.clone());
        timed_with(calls.clone(), move |call| {
            handle.purge_set(&set);
            answer(&mut cache, call);
        })
    })
}

/// Two identical calls, of which one runs and the other waits for it.
fn joined(leaf: &Leaf, calls: &Arc<[ToolCall]>) -> Row {
    let (leaf, calls) = (leaf.clone(), calls.clone());
    Row::new("layer on moka: a miss and one joined", move || {
        let gate = Arc::new(AtomicBool::new(false));
        let layer = layer_of(false);
        let mut cache = layer.layer(Leaf {
            gate: Some(gate.clone()),
            ..leaf.clone()
        });
        let handle = layer.handle();
        timed_with(calls.clone(), move |call| {
            handle.purge_set(call.tool().set());
            gate.store(false, Ordering::Relaxed);
            let mut cx = Context::from_waker(Waker::noop());
            let (mut first, mut second) = (pin!(cache.call(call.clone())), pin!(cache.call(call)));
            assert!(first.as_mut().poll(&mut cx).is_pending());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            gate.store(true, Ordering::Relaxed);
            assert!(first.poll(&mut cx).is_ready());
            assert!(second.poll(&mut cx).is_ready());
        })
    })
}

fn invalidations(leaf: &Leaf, write: &ToolCall) -> Row {
    let cache = layer_of(false).layer(leaf.clone());
    let write = write.clone();
    Row::new("layer on moka: a write that invalidates", move || {
        let mut cache = cache.clone();
        timed_with([write.clone()].into(), move |call| answer(&mut cache, call))
    })
}

fn report(rows: &[Row]) {
    let bare = |threads| -> f64 {
        let of = |name| {
            rows.iter()
                .find(|row| row.name == name)
                .expect("a bare row")
        };
        of("bare moka get").median(threads)
            + of("bare SipHash-1-3-128 of 200 bytes").median(threads)
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let processors = thread::available_parallelism().map_or(0, usize::from);
    if std::env::args().any(|argument| argument == "--json") {
        for row in rows {
            let line = json!({
                "name": row.name,
                "ns": row.median(1),
                "ns_two_threads": row.median(2),
                "times_bare": row.median(1) / bare(1),
                "times_bare_two_threads": row.median(2) / bare(2),
                "bytes_allocated": row.allocated,
                "load": load,
                "processors": processors,
            });
            println!("{line}");
        }
        return;
    }
    println!(
        "{processors} processors, load {load}; nanoseconds a call, median of {} runs",
        PASSES * RUNS
    );
    println!(
        "{:<40}{:>10}{:>8}{:>12}{:>8}{:>12}",
        "", "1 thread", "times", "2 threads", "times", "bytes"
    );
    for row in rows {
        let (one, two) = (row.median(1), row.median(2));
        println!(
            "{:<40}{one:>10.0}{:>8.2}{two:>12.0}{:>8.2}{:>12}",
            row.name,
            one / bare(1),
            two / bare(2),
            row.allocated,
        );
    }
}
