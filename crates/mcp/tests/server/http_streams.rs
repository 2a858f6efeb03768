//! Streams: progress, notifications, and what happens when a client disconnects.

use std::time::Duration;

use callward_mcp::server::HttpOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::http::{self, Events, META, Server, call, status};

async fn assert_progress_then_result(mut events: Events) {
    for step in 1..=3 {
        let report = events.next().await.unwrap();
        assert_eq!(report["method"], "notifications/progress");
        assert_eq!(report["params"]["progressToken"], "mine");
        assert_eq!(report["params"]["progress"], f64::from(step));
    }
    let answer = events.next().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    assert!(events.next().await.is_none(), "nothing follows the answer");
}

#[tokio::test]
async fn progress_comes_in_order_and_then_the_result() {
    let server = Server::start().await;
    let body = call("5", "steps", r#","_meta":{"progressToken":"mine"}"#);
    let stateless = server.post(body.clone()).send().await.unwrap();
    assert_progress_then_result(Events::of(stateless)).await;
    let session = server.session().await;
    let request = server.post(body).header("mcp-session-id", session);
    assert_progress_then_result(Events::of(request.send().await.unwrap())).await;
    let meta = META.replacen('{', r#"{"progressToken":"mine","#, 1);
    let modern = server.modern_as("tools/call", r#""name":"steps""#, &meta);
    assert_progress_then_result(Events::of(modern.send().await.unwrap())).await;
}

#[tokio::test]
async fn a_client_that_takes_no_stream_gets_the_result_without_progress() {
    let server = Server::start().await;
    let body = call("5", "steps", r#","_meta":{"progressToken":1}"#);
    let request = server.client.post(&server.url).body(body);
    let request = request.header("content-type", "application/json");
    let answer = request.header("accept", "application/json").send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let answer = http::json(answer).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_result_with_line_breaks_stays_one_event() {
    let server = Server::start().await;
    let body = call("1", "pretty", r#","_meta":{"progressToken":1}"#);
    let mut events = Events::of(server.post(body).send().await.unwrap());
    assert_eq!(
        events.next().await.unwrap()["result"],
        json!({"content": []})
    );
}

#[tokio::test]
async fn a_client_that_leaves_drops_its_call() {
    let server = Server::start().await;
    let meta = META.replacen('{', r#"{"progressToken":1,"#, 1);
    let modern = |meta: &str| server.modern_as("tools/call", r#""name":"hold""#, meta);
    let requests = [
        server.post(call("1", "hold", "")),
        server.post(call("1", "hold", r#","_meta":{"progressToken":1}"#)),
        modern(META),
        modern(&meta),
    ];
    for request in requests {
        let waiting = tokio::spawn(request.send());
        assert_eq!(server.bench.event().await, "started");
        // a stream has answered its headers by now, which `send` waits for
        waiting.abort();
        drop(waiting.await);
        assert_eq!(server.bench.event().await, "dropped");
    }
}

#[tokio::test]
async fn a_session_is_told_when_the_tools_change() {
    let server = Server::start().await;
    let session = server.session().await;
    let get = || {
        server
            .client
            .get(&server.url)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &session)
    };
    let mut first = Events::of(get().send().await.unwrap());
    server.bench.listened(1).await;
    server.bench.change(&["a"]);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(first.next().await.unwrap(), changed);

    let mut second = Events::of(get().send().await.unwrap());
    assert!(
        first.next().await.is_none(),
        "a message travels on one stream only"
    );
    server.bench.listened(2).await;
    server.bench.change(&["b"]);
    assert_eq!(second.next().await.unwrap(), changed);

    let delete = server.client.delete(&server.url);
    assert_eq!(status(delete.header("mcp-session-id", &session)).await, 204);
    assert!(second.next().await.is_none());
    assert_eq!(status(get()).await, 404);
}

async fn stoppable() -> (Server, CancellationToken) {
    let options = HttpOptions::default();
    let shutdown = options.shutdown.clone();
    (Server::with(options).await, shutdown)
}

#[tokio::test]
async fn a_subscription_is_acknowledged_tagged_and_answered_at_the_end() {
    let (server, shutdown) = stoppable().await;
    let listen = server.modern(
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#,
    );
    let mut events = Events::of(listen.send().await.unwrap());
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 1});
    assert_eq!(
        events.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": tag, "notifications": {"toolsListChanged": true}}})
    );
    server.bench.change(&["a"]);
    assert_eq!(
        events.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"_meta": tag}})
    );
    shutdown.cancel();
    assert_eq!(
        events.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "_meta": tag}})
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn who_did_not_ask_for_tools_is_not_told_of_them() {
    let (server, shutdown) = stoppable().await;
    let listen = server.modern("subscriptions/listen", r#""notifications":{}"#);
    let mut events = Events::of(listen.send().await.unwrap());
    assert_eq!(
        events.next().await.unwrap()["params"]["notifications"],
        json!({})
    );
    server.bench.change(&["a"]);
    shutdown.cancel();
    assert_eq!(
        events.next().await.unwrap()["result"]["resultType"],
        "complete"
    );
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let mut options = HttpOptions::default();
    options.keep_alive = Duration::from_millis(5);
    let server = Server::with(options).await;
    let session = server.session().await;
    let request = server
        .client
        .get(&server.url)
        .header("mcp-session-id", session);
    let mut events = Events::of(request.send().await.unwrap());
    for _ in 0..3 {
        assert_eq!(events.raw().await.unwrap(), ":");
    }
}
