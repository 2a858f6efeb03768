//! In-process tools behind the whole stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callward::{CacheStatus, Delivery, ErrorKind, Json, Stack, ToolSpec, Tools};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::{Service, ServiceExt};

use crate::bed::{has, recorded};

#[derive(Deserialize)]
struct Id {
    id: u64,
}

#[derive(Serialize)]
struct Order {
    id: u64,
    run: usize,
}

/// Orders that count how often each of their tools ran.
async fn orders() -> (Stack, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let (reads, writes) = (runs.clone(), runs.clone());
    let next = |runs: &Arc<AtomicUsize>| runs.fetch_add(1, Ordering::SeqCst) + 1;
    let tools = Tools::new("orders")
        .unwrap()
        .tool(ToolSpec::new("get_order"), move |Id { id }: Id| {
            let run = next(&reads);
            async move { Ok::<_, String>(Json(Order { id, run })) }
        })
        .unwrap()
        .tool(ToolSpec::new("create_order"), move |_: Value| {
            let run = next(&writes);
            async move { Ok::<_, String>(run.to_string()) }
        })
        .unwrap();
    (Stack::builder().server(tools).build().await.unwrap(), runs)
}

#[tokio::test(start_paused = true)]
async fn a_read_is_answered_from_the_cache_until_a_write_and_the_record_says_so() {
    let (stack, runs) = orders().await;
    let mut read = Vec::new();
    for (tool, cache, attempts) in [
        ("orders.get_order", CacheStatus::Miss, 1),
        ("orders::get_order", CacheStatus::Hit, 0),
        ("orders.create_order", CacheStatus::Invalidated, 1),
        ("orders__get_order", CacheStatus::Miss, 1),
    ] {
        let (answer, record) = recorded(&stack, tool, r#"{"id":7}"#).await;
        let facts = record.facts();
        assert_eq!((facts.cache, facts.started_attempts), (cache, attempts));
        let server = facts.server.map(|(server, _)| server.to_string());
        assert_eq!(server.as_deref(), (attempts > 0).then_some("orders"));
        read.push(answer.unwrap());
    }
    assert!(read[0] == read[1] && read[0] != read[3]);
    // the stack is a service of Tower, too
    let mut service = tower::ServiceBuilder::new().service(stack.service());
    let call = stack.prepare("orders.get_order", r#"{"id":7}"#).unwrap();
    let answer = service.ready().await.unwrap().call(call).await;
    assert_eq!(answer.unwrap(), read[3]);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_and_unknown_tools_are_the_callers_fault() {
    let (stack, runs) = orders().await;
    let odd = json!({"id": "seven"});
    let error = stack.call("orders.get_order", odd).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidCall);
    assert_eq!(error.code, Some(-32602));
    has(error, &["expected u64"]);
    let error = stack.call("order.get_order", json!({})).await.unwrap_err();
    let expected = (ErrorKind::UnknownTool, Delivery::NotSent);
    assert_eq!((error.kind, error.delivery), expected);
    has(error, &["orders__get_order"]);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_the_tasks_in_the_background() {
    let (stack, _) = orders().await;
    let tasks = || {
        let metrics = tokio::runtime::Handle::current().metrics();
        metrics.num_alive_tasks()
    };
    assert!(tasks() > 0);
    stack.shutdown().await;
    assert_eq!(tasks(), 0);
}
