//! A write whose answer never comes names what to check it with.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::core::ServerEvent;
use tollgate::{BuildError, Delivery, ErrorKind, Server, Stack, ToolError};
use tollgate_testkit::{MockServer, MockService};

fn tool(name: &str, read_only: bool) -> Value {
    json!({"name": name, "annotations": {"readOnlyHint": read_only, "destructiveHint": false}})
}

/// A shop that never answers.
fn shop(tools: &[&str]) -> Arc<MockServer> {
    let lost = MockService::new(|_, _| async {
        let kind = ErrorKind::ConnectionLost;
        Err(ToolError::new(kind, Delivery::Unknown, "reset"))
    });
    MockServer::new("shop-1", listed(tools), lost)
}

fn listed(tools: &[&str]) -> Vec<Value> {
    let reads = |name: &str| name.starts_with("get_") || name.starts_with("list_");
    tools.iter().map(|name| tool(name, reads(name))).collect()
}

async fn start(shop: &Arc<MockServer>, server: Server) -> Stack {
    let shop = shop.clone();
    let up = tokio::spawn(async move {
        tokio::task::yield_now().await;
        shop.emit(&ServerEvent::Up);
    });
    let stack = Stack::builder()
        .server(server.in_set("shop".parse().unwrap()))
        .build();
    let stack = stack.await.unwrap();
    up.await.unwrap();
    stack
}

/// What an agent that calls this tool is told to check with.
async fn check(stack: &Stack, tool: &str) -> Option<String> {
    let error = stack.call(tool, json!({"id": 7})).await.unwrap_err();
    let known = error.outcome().unwrap();
    let name = known.verify_with.as_ref()?.client_name().to_owned();
    assert!(error.message().contains(&format!("`{name}`")), "{error}");
    assert!(
        stack.catalogue().find(&name).is_some(),
        "an agent can call it"
    );
    Some(name)
}

#[tokio::test(start_paused = true)]
async fn the_error_names_the_tool_that_reads_what_was_written() {
    let shop = shop(&["create_order", "get_order", "pay"]);
    let stack = start(&shop, Server::shared(shop.clone())).await;
    assert_eq!(
        check(&stack, "shop__create_order").await.as_deref(),
        Some("shop__get_order")
    );
    assert_eq!(check(&stack, "shop__pay").await, None);
    let error = stack.call("shop__pay", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    let server = error.outcome().and_then(|known| known.server.as_ref());
    assert_eq!(server.map(ToString::to_string).as_deref(), Some("shop-1"));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_repeated_in_vain_names_it_too() {
    let shop = shop(&["update_order", "get_order"]);
    let stack = start(&shop, Server::shared(shop.clone())).await;
    let checked = check(&stack, "shop__update_order").await;
    assert_eq!(checked.as_deref(), Some("shop__get_order"));
    let error = stack.call("shop__get_order", json!({})).await.unwrap_err();
    assert_eq!(error.outcome(), None, "a read has none");
}

#[tokio::test(start_paused = true)]
async fn the_operator_says_what_to_check_with() {
    let shop = shop(&["pay", "list_payments"]);
    let server = Server::shared(shop.clone())
        .verify_with("pay".parse().unwrap(), "list_payments".parse().unwrap());
    let stack = start(&shop, server).await;
    assert_eq!(
        check(&stack, "shop__pay").await.as_deref(),
        Some("shop__list_payments")
    );
}

#[tokio::test(start_paused = true)]
async fn a_reading_tool_that_is_gone_is_named_no_more() {
    let shop = shop(&["create_order", "get_order"]);
    let stack = start(&shop, Server::shared(shop.clone())).await;
    assert!(check(&stack, "shop__create_order").await.is_some());
    shop.set_tools(Ok(listed(&["create_order"])));
    shop.emit(&ServerEvent::ToolsChanged);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(check(&stack, "shop__create_order").await, None);
}

#[tokio::test(start_paused = true)]
async fn servers_of_one_set_must_agree_on_what_to_check_with() {
    let server = |id: &str, reader: &str| {
        let server = MockServer::new(id, Vec::new(), MockService::counting());
        Server::shared(server)
            .in_set("shop".parse().unwrap())
            .verify_with("pay".parse().unwrap(), reader.parse().unwrap())
    };
    let built = Stack::builder()
        .server(server("a", "get_payment"))
        .server(server("b", "list_payments"))
        .build()
        .await;
    assert!(
        matches!(&built, Err(BuildError::Conflict { what, .. }) if what.contains("verify")),
        "{built:?}"
    );
}
