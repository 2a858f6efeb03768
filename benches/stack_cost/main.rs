//! What the stack costs: nanoseconds per call, beside the same call without it.
//!
//! `cargo bench --bench stack`. One thread, one caller; the tool answers at once, so everything
//! above the first row is ours. The hit row answers without reaching the tool.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and may panic"
)]

use std::hint::black_box;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use tollgate::{Stack, ToolOutput, ToolServer, ToolSpec, Tools};

const CALLS: u32 = 200_000;
const ROUNDS: usize = 5;

fn tools() -> Tools {
    let answer = ToolOutput::text("x".repeat(200));
    let (read, write) = (answer.clone(), answer);
    Tools::new("bench")
        .unwrap()
        .tool(ToolSpec::new("get_item"), move |_: Value| {
            let answer = read.clone();
            async move { Ok::<_, String>(answer) }
        })
        .unwrap()
        .tool(ToolSpec::new("create_item"), move |_: Value| {
            let answer = write.clone();
            async move { Ok::<_, String>(answer) }
        })
        .unwrap()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let direct = Arc::new(tools());
        let stack = Stack::builder().server(tools()).build().await.unwrap();
        let arguments = json!({"id": 123_456, "query": "q".repeat(150)}).to_string();
        let read = stack.prepare("bench.get_item", arguments.clone()).unwrap();
        let write = stack.prepare("bench.create_item", arguments).unwrap();

        println!(
            "{:44} {:>10}",
            "one call, 200 B arguments, 200 B answer", "ns"
        );
        row("the tool alone, no stack", || direct.call(write.clone())).await;
        row("write through the stack (pass-through)", || {
            stack.run(write.clone())
        })
        .await;
        row("read through the stack, from the cache", || {
            stack.run(read.clone())
        })
        .await;
        assert!(
            stack.cache_stats().hits > u64::from(CALLS),
            "the last row must be hits"
        );
    });
}

/// Prints the best of several rounds: the others were disturbed.
async fn row<F, Fut>(name: &str, mut call: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<ToolOutput, tollgate::ToolError>>,
{
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call().await.unwrap());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
    }
    println!("{name:44} {best:>10.0}");
}
