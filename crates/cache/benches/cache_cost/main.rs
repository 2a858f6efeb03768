//! What the cache costs: each way a call can go, next to the bare parts, in one run.
//!
//! `cargo bench -p callward-cache --features lean --bench cache_cost`, after `--` with `--json`
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

mod calls;
mod measure;
mod rows;

use std::sync::Arc;
use std::thread;

use callward_core::{ReplicaSetId, ToolCall, ToolOutput};
use callward_testkit::tool;
use serde_json::json;

use calls::{Leaf, calls, calls_asked, sip};
use measure::{RUNS, Row};
#[cfg(feature = "lean")]
use rows::quick_cache_get;
use rows::{
    bare_service, bare_sip, hits, invalidations, joined, misses, moka_get, other_layer, store_get,
};

/// How many distinct calls there are if `--calls` does not say.
const CALLS: usize = 1024;
const PASSES: usize = 25;

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

    rows.push(moka_get(&keys, &output));
    #[cfg(feature = "lean")]
    rows.push(quick_cache_get(&keys, &output));
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
