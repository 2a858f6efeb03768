//! In-process tools behind the whole stack.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::cache::CacheConfig;
use callward::{
    Annotations, BuildError, CacheStatus, CallRecord, Delivery, Effect, ErrorKind, Json, Profile,
    Server, Stack, ToolServer, ToolSpec, Tools,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::{Service, ServiceExt};

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
fn orders() -> (Tools, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let (reads, writes, fails) = (runs.clone(), runs.clone(), runs.clone());
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
        .unwrap()
        .tool(ToolSpec::new("find_order"), move |_: Value| {
            next(&fails);
            async { Err::<String, _>("no such order") }
        })
        .unwrap();
    (tools, runs)
}

async fn stack(tools: Tools) -> Stack {
    Stack::builder().server(tools).build().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_read_is_answered_from_the_cache_until_a_write() {
    let (tools, runs) = orders();
    let stack = stack(tools).await;
    let first = stack
        .call("orders.get_order", json!({"id": 7}))
        .await
        .unwrap();
    let second = stack
        .call("orders::get_order", json!({"id": 7}))
        .await
        .unwrap();
    assert_eq!(first, second);
    assert_eq!(runs.load(Ordering::SeqCst), 1);

    stack.call("orders.create_order", json!({})).await.unwrap();
    let fresh = stack
        .call("orders__get_order", json!({"id": 7}))
        .await
        .unwrap();
    assert_ne!(first, fresh);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_for_its_time_and_no_longer() {
    let (tools, runs) = orders();
    let stack = stack(tools).await;
    let read = || stack.call("orders.get_order", json!({"id": 7}));
    read().await.unwrap();
    tokio::time::advance(Duration::from_secs(299)).await;
    read().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    read().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_failure_is_an_answer_and_never_cached() {
    let (tools, runs) = orders();
    let stack = stack(tools).await;
    for run in 1..=2 {
        let output = stack.call("orders.find_order", json!({})).await.unwrap();
        assert!(output.is_error());
        assert_eq!(output.to_text(), "no such order");
        assert_eq!(runs.load(Ordering::SeqCst), run);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_the_callers_fault() {
    let (tools, runs) = orders();
    let stack = stack(tools).await;
    let error = stack
        .call("orders.get_order", json!({"id": "seven"}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCall);
    assert_eq!(error.code(), Some(-32602));
    assert!(error.message().contains("expected u64"), "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_named_with_what_may_have_been_meant() {
    let (tools, _) = orders();
    let stack = stack(tools).await;
    let error = stack.call("order.get_order", json!({})).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.delivery()),
        (ErrorKind::UnknownTool, Delivery::NotSent)
    );
    assert!(error.message().contains("orders__get_order"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_record_says_what_happened() {
    let (tools, _) = orders();
    let stack = stack(tools).await;
    let mut seen = Vec::new();
    for tool in ["get_order", "get_order", "create_order"] {
        let record = Arc::new(CallRecord::new());
        let call = stack
            .prepare(&format!("orders.{tool}"), r#"{"id":1}"#)
            .unwrap();
        stack.run(call.with_record(record.clone())).await.unwrap();
        let server = record.server().map(|(server, _)| server.to_string());
        seen.push((record.cache(), record.started_attempts(), server));
    }
    let orders = Some("orders".to_owned());
    assert_eq!(
        seen,
        [
            (CacheStatus::Miss, 1, orders.clone()),
            (CacheStatus::Hit, 0, None),
            (CacheStatus::Invalidated, 1, orders),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_stack_is_a_tower_service() {
    let (tools, runs) = orders();
    let stack = stack(tools).await;
    let mut service = tower::ServiceBuilder::new().service(stack.service());
    for _ in 0..2 {
        let call = stack.prepare("orders.get_order", r#"{"id":1}"#).unwrap();
        service.ready().await.unwrap().call(call).await.unwrap();
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_explanation_names_source_and_reason_of_each_hint() {
    let (tools, _) = orders();
    let mut hints = Annotations::default();
    hints.requires_confirmation = Some(true);
    let server = Server::new(tools).override_tool("create_order".parse().unwrap(), hints);
    let stack = Stack::builder().server(server).build().await.unwrap();
    let text = stack.explain("orders.create_order").unwrap().to_string();
    assert!(text.contains("confirm  yes"), "{text}");
    assert!(
        text.contains("requiresConfirmation = true: operator"),
        "{text}"
    );
    let read = stack.explain("orders.get_order").unwrap();
    assert_eq!(read.plan().effect, Effect::ReadOnly);
    assert!(
        read.to_string().contains("readOnlyHint = true: inferred"),
        "{read}"
    );
}

#[tokio::test(start_paused = true)]
async fn strict_asks_before_what_nobody_calls_harmless() {
    let spec = ToolSpec::new("zap");
    let tools = Tools::new("x")
        .unwrap()
        .tool(spec, |_: Value| async { Ok::<_, String>("done") })
        .unwrap();
    let stack = Stack::builder()
        .profile(Profile::strict())
        .server(tools)
        .build()
        .await
        .unwrap();
    assert_eq!(
        stack.explain("x.zap").unwrap().plan().effect,
        Effect::Destructive
    );
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_off_changes_nothing_but_the_speed() {
    let (tools, runs) = orders();
    let mut config = CacheConfig::default();
    config.enabled = false;
    let stack = Stack::builder()
        .cache(config)
        .server(tools)
        .build()
        .await
        .unwrap();
    for run in 1..=3 {
        stack
            .call("orders.get_order", json!({"id": 7}))
            .await
            .unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), run);
    }
}

#[tokio::test(start_paused = true)]
async fn two_servers_of_one_name_are_refused() {
    let built = Stack::builder()
        .server(orders().0)
        .server(orders().0)
        .build()
        .await;
    assert!(matches!(built, Err(BuildError::DuplicateServer(id)) if id.as_str() == "orders"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_replaced_in_a_clone_runs_anew_there_and_as_before_here() {
    let saying = |tools: Tools, word: &'static str| {
        let say = move |_: Value| std::future::ready(Ok::<_, String>(word));
        tools.tool(ToolSpec::new("say"), say).unwrap()
    };
    let before = saying(Tools::new("words").unwrap(), "before");
    let call = stack(before.clone()).await.prepare("words.say", "{}");
    let call = call.unwrap();
    let said = async |tools: &Tools| tools.call(call.clone()).await.unwrap().to_text();
    assert_eq!(said(&before).await, "before");
    // what ran a moment ago is not what is found again
    let after = saying(before.clone(), "after");
    assert_eq!(said(&after).await, "after");
    assert_eq!(said(&before).await, "before");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_the_tasks_in_the_background() {
    let (tools, _) = orders();
    let stack = Stack::builder().server(tools).build().await.unwrap();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    assert!(tasks() > 0);
    stack.shutdown().await;
    assert_eq!(tasks(), 0);
}
