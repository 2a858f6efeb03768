//! Calls that wait for a person: one is approved and runs once, one is denied with a note.
//! `cargo run --example approval --features approval`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::approval::{ApprovalConfig, Approvals, Decision, LocalStore, Request, State};
use callward::{Annotations, Caller, Principal, Stack, ToolSpec, Tools};
use serde_json::{Value, json};
use tokio::time::Instant;

/// An agent asks for an order to be deleted, and says how long it waited and what it got.
async fn agent(stack: &Stack, id: u64) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let caller = Arc::new(Caller::new(Principal::new("agent")));
    let call = stack.prepare("orders.delete_order", json!({"id": id}).to_string())?;
    let output = stack.run(call.with_caller(caller)).await?;
    let waited = began.elapsed().as_secs();
    println!(
        "agent:    order {id}, after {waited} s: {}",
        output.to_text()
    );
    Ok(())
}

/// An operator decides the next request, a moment after it is made.
async fn operator(
    approvals: &Approvals,
    approves: bool,
    note: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    tokio::time::sleep(Duration::from_secs(20)).await;
    let all = approvals.list().await?;
    let pending = all.iter().find(|request| request.state == State::Pending);
    let Request { id, asked, .. } = &**pending.ok_or("nothing to decide")?;
    let (principal, arguments, tool) = (&asked.principal, &asked.arguments, &asked.tool);
    println!(
        "operator: {principal} asks for {tool} {arguments} ({})",
        asked.safety
    );
    let decision = Decision {
        approves,
        by: Principal::new("ops"),
        roles: Vec::new(),
        channel: "example".to_owned(),
        note: note.map(ToOwned::to_owned),
    };
    let state = approvals.decide(id, decision).await?.state;
    println!("operator: {state}");
    Ok(())
}

// on a paused clock: waiting takes no time
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let delete =
        ToolSpec::new("delete_order").annotations(Annotations::default().with_destructive(true));
    let orders = Tools::new("orders")?.tool(delete, move |arguments: Value| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, String>(format!("order {} is deleted", arguments["id"])) }
    })?;
    let approvals = Approvals::open(LocalStore::default(), ApprovalConfig::default()).await?;
    let stack = Stack::builder().server(orders).approvals(approvals.clone());
    let stack = stack.build().await?;

    // no one decides for 50 s, so the agent is asked to come again; the request stays open
    agent(&stack, 1).await?;
    tokio::try_join!(agent(&stack, 1), operator(&approvals, true, None))?;

    let note = Some("order 2 is disputed: keep it");
    tokio::try_join!(agent(&stack, 2), operator(&approvals, false, note))?;
    // within the cool-off the operator is not asked again
    agent(&stack, 2).await?;

    for request in approvals.list().await? {
        println!("request:  {} {}", request.asked.arguments, request.state);
    }
    println!("the tool ran {} time", runs.load(Ordering::Relaxed));
    Ok(())
}
