//! A replica set: reads are shared, a destructive call goes to the primary only.
//! `cargo run --example replicas`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use callward::router::StrategyName;
use callward::{CallRecord, Server, Stack, ToolSpec, Tools};
use serde_json::{Value, json};

fn orders(id: &str) -> Result<Tools, Box<dyn std::error::Error>> {
    let tools = Tools::new(id)?
        .tool(ToolSpec::new("get_order").description("Returns one order"), |args: Value| async move {
            Ok::<_, String>(json!({"id": args["id"], "state": "paid"}))
        })?
        .tool(ToolSpec::new("delete_order").description("Deletes an order"), |_: Value| async {
            Ok::<_, String>("gone")
        })?;
    Ok(tools)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stack = Stack::builder()
        .strategy(StrategyName::RoundRobin)
        .server(
            Server::new(orders("primary")?)
                .in_set("orders".parse()?)
                .weight(80),
        )
        .server(
            Server::new(orders("replica")?)
                .in_set("orders".parse()?)
                .weight(20),
        )
        .build()
        .await?;
    for id in 0..5 {
        for tool in ["orders.get_order", "orders.delete_order"] {
            let record = Arc::new(CallRecord::new());
            let call = stack.prepare(tool, json!({"id": id}).to_string())?;
            stack.run(call.with_record(record.clone())).await?;
            let (server, reason) = record.facts().server.ok_or("no server was chosen")?;
            println!("{tool:20} {{\"id\":{id}}}  ->  {server:8} ({reason})");
        }
    }
    Ok(())
}
