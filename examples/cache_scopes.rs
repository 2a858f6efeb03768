//! Which reads a write drops: everything of the server unless the config states what a tool reads
//! and writes. `cargo run --example cache_scopes`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use callward::cache::ToolScopes;
use callward::{CallRecord, Json, Server, Stack, ToolSpec, Tools};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Order {
    id: u32,
}

/// Orders and what has become of them, behind two tools that read and one that writes.
fn shop() -> Result<Tools, Box<dyn Error>> {
    let orders = Arc::new(Mutex::new(BTreeMap::from([(7, "paid"), (8, "paid")])));
    let (one, all) = (orders.clone(), orders.clone());
    Ok(Tools::new("shop")?
        .tool(ToolSpec::new("get_order"), move |order: Order| {
            let orders = one.lock().unwrap_or_else(PoisonError::into_inner);
            let state = orders.get(&order.id).copied().ok_or("no such order");
            async move { state }
        })?
        .tool(ToolSpec::new("list_orders"), move |_: serde_json::Value| {
            let orders = all.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async move { Ok::<_, String>(Json(orders)) }
        })?
        .tool(ToolSpec::new("cancel_order"), move |order: Order| {
            let mut orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
            orders.insert(order.id, "cancelled");
            async move { Ok::<_, String>("done") }
        })?)
}

/// Calls a tool, and tells what it answered and what the cache did.
async fn call(
    stack: &Stack,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<(), Box<dyn Error>> {
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare(&format!("shop.{tool}"), arguments.to_string())?;
    let output = stack.run(call.with_record(record.clone())).await?;
    let shown = format!("{tool} {arguments}");
    let cache = record.facts().cache.as_str();
    println!("  {shown:24} {cache:12} {}", output.to_text());
    Ok(())
}

async fn cancel_one(stack: &Stack) -> Result<(), Box<dyn Error>> {
    for _ in 0..2 {
        call(stack, "get_order", json!({"id": 7})).await?;
        call(stack, "get_order", json!({"id": 8})).await?;
        call(stack, "list_orders", json!({})).await?;
    }
    call(stack, "cancel_order", json!({"id": 7})).await?;
    call(stack, "get_order", json!({"id": 7})).await?;
    call(stack, "get_order", json!({"id": 8})).await?;
    call(stack, "list_orders", json!({})).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("no scopes are stated: a write drops everything that was read");
    let stack = Stack::builder().server(shop()?).build().await?;
    cancel_one(&stack).await?;

    println!("\norders are distinguished: order 8 stays, the list depends on all of them");
    let order = ["order:{id}"];
    let shop = Server::new(shop()?)
        .tool_scopes("get_order".parse()?, ToolScopes::reading(order)?)
        .tool_scopes("cancel_order".parse()?, ToolScopes::writing(order)?);
    let stack = Stack::builder().server(shop).build().await?;
    cancel_one(&stack).await?;

    let explained = stack.explain_call("shop.cancel_order", r#"{"id": 7}"#)?;
    println!("\n{}", explained.trail());
    Ok(())
}
