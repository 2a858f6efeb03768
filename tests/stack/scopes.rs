//! Which state tools read and write, as an embedder says it.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use callward::cache::{CacheConfig, ScopeRules, ToolScopes};
use callward::{BuildError, Server, Stack, ToolSpec, Tools};
use serde_json::{Value, json};

fn shop(id: &str) -> Server {
    let tool = |tools: Tools, name: &str| {
        let answer = |_: Value| async { Ok::<_, String>("done") };
        tools.tool(ToolSpec::new(name), answer).unwrap()
    };
    let tools = ["get_order", "create_order"]
        .into_iter()
        .fold(Tools::new(id).unwrap(), tool);
    Server::new(tools).in_set("shop".parse().unwrap())
}

fn reads(server: Server, scope: &str) -> Server {
    let scopes = ToolScopes::reading([scope]).unwrap();
    server.tool_scopes("get_order".parse().unwrap(), scopes)
}

fn writes(scope: &str) -> ToolScopes {
    ToolScopes::writing([scope]).unwrap()
}

/// Reads one order, writes another, and says how often the read was answered from the cache.
async fn hits(stack: &Stack) -> u64 {
    for (tool, id) in [("get_order", 1), ("create_order", 2), ("get_order", 1)] {
        let name = format!("shop.{tool}");
        stack.call(&name, json!({ "id": id })).await.unwrap();
    }
    stack.cache_stats().hits
}

#[tokio::test(start_paused = true)]
async fn a_write_drops_what_it_names_and_all_of_the_set_if_it_names_nothing() {
    let silent = Stack::builder().server(shop("a")).build().await.unwrap();
    assert_eq!(hits(&silent).await, 0);
    let server = reads(shop("a"), "order:{id}");
    let server = server.tool_scopes("create_order".parse().unwrap(), writes("order:{id}"));
    let reported = Stack::builder().server(server).build().await.unwrap();
    assert_eq!(hits(&reported).await, 1);
    let explained = reported
        .explain_call("shop.create_order", r#"{"id": 2}"#)
        .unwrap();
    assert_eq!(explained.writes(), Some(vec!["@shop/order:2".to_owned()]));
    assert_eq!(explained.reads(), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_is_said_to_touch_joins_what_the_cache_was_told() {
    let mut cache = CacheConfig::default();
    cache.scopes = ScopeRules::default().with(
        "shop".parse().unwrap(),
        "create_order".parse().unwrap(),
        writes("order:{id}"),
    );
    let stack = Stack::builder()
        .cache(cache)
        .server(reads(shop("a"), "order:{id}"))
        .build()
        .await
        .unwrap();
    assert_eq!(hits(&stack).await, 1);
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_set_must_agree_on_what_a_tool_touches() {
    let built = Stack::builder()
        .server(reads(shop("a"), "x"))
        .server(shop("b"))
        .server(reads(shop("c"), "y"))
        .build()
        .await;
    assert!(
        matches!(&built, Err(BuildError::Conflict { what, .. }) if what.contains("reads and writes")),
        "{built:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_has_no_effect_is_said_in_the_explanation() {
    let server = shop("a").tool_scopes("get_order".parse().unwrap(), writes("x"));
    let stack = Stack::builder().server(server).build().await.unwrap();
    let text = stack.explain("shop.get_order").unwrap().to_string();
    assert!(text.contains("warning: `writes` has no effect"), "{text}");
}
