//! How the breakers are, and holding them open or closed.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::future::join_all;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::Gateway;

/// Listens on a port of its own, with two tools: `sick` ends the connection of every call, and
/// `well` answers. Returns the URL.
async fn two_tools() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let routes = Router::new().route("/mcp", post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

async fn answer(body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let Some(id) = request.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let tool = |name| {
        let hints = json!({ "readOnlyHint": true });
        json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": hints })
    };
    let result = match request["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "two", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [tool("sick"), tool("well")] }),
        "tools/call" if request["params"]["name"] == "sick" => {
            let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("broken"))]);
            return (kind, Body::from_stream(broken)).into_response();
        }
        "tools/call" => json!({ "content": [{ "type": "text", "text": "fine" }] }),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            let message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            return (kind, message.to_string()).into_response();
        }
    };
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    (kind, message.to_string()).into_response()
}

#[tokio::test]
async fn the_breaker_of_a_tool_that_drops_connections_opens_alone() {
    // with more time than this, calls of the sick tool would wait for its next probe, half a minute
    let url = two_tools().await;
    let config = format!("call_deadline = \"20s\"\n[servers.two]\nurl = \"{url}\"\n");
    let gateway = Gateway::configured(&config).await;
    let call = |tool: &'static str, key: usize| gateway.call(tool, json!({ "key": key }));
    let sick = join_all((0..24).map(|key| call("two__sick", key))).await;
    assert!(
        sick.iter().all(|answer| answer["result"].is_null()),
        "{sick:?}"
    );
    assert!(
        sick.iter()
            .any(|answer| answer.to_string().contains("connection_lost")),
        "{sick:?}"
    );
    // what several callers lose within a moment counts once: it takes some that come after it
    for key in 24..2_000 {
        let answer = call("two__sick", key).await;
        if answer.to_string().contains("breaker_open") {
            break;
        }
    }
    let well = join_all((0..40).map(|key| call("two__well", key))).await;
    let refused: Vec<_> = well
        .iter()
        .filter(|answer| answer["result"].is_null())
        .collect();
    assert!(
        refused.is_empty(),
        "{} of 40: {}",
        refused.len(),
        refused[0]
    );
    for breaker in gateway.json::<Vec<Value>>("/api/breakers").await {
        let open = breaker["scope"] == "tool" && breaker["tool"] == "sick";
        let state = if open { "open" } else { "closed" };
        assert_eq!(breaker["state"], state, "{breaker}");
    }
}
