//! What the profiles change in what reaches a server, through the whole stack.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;

use callward::{Delivery, ErrorKind, Profile, Server, Stack, ToolCall, ToolError, ToolOutput};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService};
use serde_json::{Value, json};

fn tools() -> Vec<Value> {
    let tool = |name: &str, annotations: Value| json!({"name": name, "annotations": annotations});
    vec![
        tool("list_orders", json!({"readOnlyHint": true})),
        tool(
            "rename_order",
            json!({"readOnlyHint": false, "idempotentHint": true, "destructiveHint": false}),
        ),
        tool(
            "add_order",
            json!({"readOnlyHint": false, "idempotentHint": false, "destructiveHint": false}),
        ),
        tool(
            "cancel_order",
            json!({"readOnlyHint": false, "idempotentHint": true, "destructiveHint": true}),
        ),
        tool(
            "refund_order",
            json!({"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true}),
        ),
    ]
}

/// Calls a tool once on a server that fails at first, and counts how often it ran.
async fn runs(profile: Profile, tool: &str, fails: usize, calls: usize) -> usize {
    let service = MockService::new(move |_: ToolCall, n| {
        let fault = || ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "busy");
        let answer = if n <= fails {
            Err(fault())
        } else {
            Ok(ToolOutput::text("done"))
        };
        std::future::ready(answer)
    });
    let server: Arc<MockServer> = MockServer::new("shop", tools(), service.clone());
    let building = tokio::spawn(
        Stack::builder()
            .profile(profile)
            .server(Server::shared(server.clone()))
            .build(),
    );
    tokio::task::yield_now().await;
    server.emit(&ServerEvent::Up);
    let stack = building.await.unwrap().unwrap();
    for _ in 0..calls {
        // how often a call ran shows whether it is retried
        let _ = stack.call(&format!("shop.{tool}"), json!({"id": 1})).await;
    }
    service.started()
}

#[tokio::test(start_paused = true)]
async fn each_profile_repeats_what_its_system_repeats_and_nothing_else() {
    for (tool, repeated_by) in [
        ("list_orders", Profile::NAMES),
        ("rename_order", &["standard", "strict", "neurolink", "epd"]),
        ("add_order", &[]),
        ("cancel_order", &["epd"]),
        ("refund_order", &[]),
    ] {
        for profile in Profile::all() {
            let name = profile.name;
            let want = if repeated_by.contains(&name) { 2 } else { 1 };
            assert_eq!(runs(profile, tool, 1, 1).await, want, "{tool} under {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_profile_keeps_what_its_system_keeps_and_nothing_else() {
    for (tool, kept_by) in [
        ("list_orders", Profile::NAMES),
        ("rename_order", &["standard", "strict", "neurolink", "epd"]),
        ("add_order", &[]),
        ("cancel_order", &[]),
        ("refund_order", &[]),
    ] {
        for profile in Profile::all() {
            let name = profile.name;
            let want = if kept_by.contains(&name) { 1 } else { 2 };
            assert_eq!(runs(profile, tool, 0, 2).await, want, "{tool} under {name}");
        }
    }
}
