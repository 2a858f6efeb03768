//! Two in-process tools behind the whole stack: `cargo run --example quickstart`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward::{Stack, ToolSpec, Tools};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stock = Arc::new(AtomicU64::new(3));
    let (reads, writes) = (stock.clone(), stock);
    let shop = Tools::new("shop")?
        .tool(
            ToolSpec::new("get_stock").description("Returns the stock"),
            move |_: Value| {
                let stock = reads.load(Ordering::Relaxed);
                async move { Ok::<_, String>(json!({"stock": stock})) }
            },
        )?
        .tool(
            ToolSpec::new("add_stock").description("Adds one piece"),
            move |_: Value| {
                let stock = writes.fetch_add(1, Ordering::Relaxed) + 1;
                async move { Ok::<_, String>(json!({"stock": stock})) }
            },
        )?;
    let stack = Stack::builder().server(shop).build().await?;

    for tool in ["get_stock", "get_stock", "add_stock", "get_stock"] {
        let output = stack.call(&format!("shop.{tool}"), json!({})).await?;
        println!("{tool:10} {}", output.to_text());
    }
    let stats = stack.cache().stats();
    println!(
        "{} hit, {} misses: the write made the next read fresh",
        stats.hits, stats.misses
    );
    println!("\n{}", stack.explain("shop.add_stock")?);
    Ok(())
}
