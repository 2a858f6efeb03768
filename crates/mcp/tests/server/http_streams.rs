//! Streams: progress, notifications, and what happens when a client disconnects.

use std::time::Duration;

use serde_json::json;

use crate::http::{Events, META, Server, call, json, status};

#[tokio::test]
async fn progress_comes_in_order_and_then_the_result() {
    let server = Server::start().await;
    let body = call("5", "steps", r#","_meta":{"progressToken":"mine"}"#);
    let meta = META.replacen('{', r#"{"progressToken":"mine","#, 1);
    for request in [
        server.post(&*body),
        server
            .post(&*body)
            .header("mcp-session-id", server.session().await),
        server.modern_as("tools/call", r#""name":"steps""#, &meta),
    ] {
        let mut events = Events::of(request).await;
        for step in 1..=3 {
            let report = events.next().await.unwrap();
            assert_eq!(report["method"], "notifications/progress");
            let expected = json!({"progressToken": "mine", "progress": f64::from(step)});
            assert_eq!(report["params"], expected);
        }
        let answer = events.next().await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert!(events.next().await.is_none(), "nothing follows the answer");
    }
    // a client that takes no stream gets no progress
    let request = server.request(reqwest::Method::POST).body(body);
    let request = request.header("content-type", "application/json");
    let answer = request.header("accept", "application/json").send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let answer = json(answer).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    // without a report there is no stream
    let body = call("1", "pretty", r#","_meta":{"progressToken":1}"#);
    let answer = server.post(&*body).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(json(answer).await["result"], json!({"content": []}));
    // reports that come with the result come before it, and line breaks in it end no event
    let body = body.replace("pretty", "report");
    let mut events = Events::of(server.post(body)).await;
    let mut next = async || events.next().await.unwrap();
    assert_eq!(next().await["method"], "notifications/progress");
    assert_eq!(next().await["result"], json!({"content": []}));
}

#[tokio::test]
async fn a_client_that_leaves_drops_its_call() {
    let server = Server::start().await;
    let meta = META.replacen('{', r#"{"progressToken":1,"#, 1);
    let modern = |meta: &str| server.modern_as("tools/call", r#""name":"hold""#, meta);
    for request in [
        server.post(call("1", "hold", "")),
        server.post(call("1", "hold", r#","_meta":{"progressToken":1}"#)),
        modern(META),
        modern(&meta),
    ] {
        let waiting = tokio::spawn(request.send());
        assert_eq!(server.bench.event().await, "started");
        // a stream has answered its headers by now, which `send` waits for
        waiting.abort();
        drop(waiting.await);
        assert_eq!(server.bench.event().await, "dropped");
    }
}

#[tokio::test]
async fn a_session_is_notified_when_the_tools_change() {
    let server = Server::start().await;
    let session = server.session().await;
    let mut first = Events::of(server.listen(&session)).await;
    server.bench.listened(1).await;
    server.bench.change(&["a"]);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(first.next().await.unwrap(), changed);

    let mut second = Events::of(server.listen(&session)).await;
    let ended = first.next().await.is_none();
    assert!(ended, "a message travels on one stream only");
    server.bench.listened(2).await;
    server.bench.change(&["b"]);
    assert_eq!(second.next().await.unwrap(), changed);

    assert_eq!(server.delete(&session).await, 204);
    assert!(second.next().await.is_none());
    assert_eq!(status(server.listen(&session)).await, 404);
}

#[tokio::test]
async fn a_subscription_is_acknowledged_tagged_and_answered_at_the_end() {
    let tag = json!({"io.modelcontextprotocol/subscriptionId": 7});
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
        "params": {"_meta": tag}});
    let tools = r#"{"toolsListChanged":true,"promptsListChanged":true}"#;
    for (wanted, accepted, changed) in [
        (tools, json!({"toolsListChanged": true}), Some(changed)),
        // it is not notified of what it did not ask for
        ("{}", json!({}), None),
    ] {
        let mut shutdown = None;
        let server = Server::with(|options| shutdown = Some(options.shutdown.clone())).await;
        let wanted = format!(r#""notifications":{wanted}"#);
        let mut events = Events::of(server.modern("subscriptions/listen", &wanted)).await;
        let acknowledged = json!({"jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": tag, "notifications": accepted}});
        assert_eq!(events.next().await.unwrap(), acknowledged);
        server.bench.change(&["a"]);
        if let Some(changed) = changed {
            assert_eq!(events.next().await.unwrap(), changed);
        }
        shutdown.unwrap().cancel();
        let result = json!({"resultType": "complete", "_meta": tag});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": result});
        assert_eq!(events.next().await.unwrap(), answer);
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments() {
    let server = Server::with(|options| options.keep_alive = Duration::from_millis(5)).await;
    let session = server.session().await;
    let held = call("1", "hold", r#","_meta":{"progressToken":1}"#);
    for request in [server.listen(&session), server.post(held)] {
        let mut events = Events::of(request).await;
        for _ in 0..3 {
            assert_eq!(events.raw().await.unwrap(), ":");
        }
    }
}
