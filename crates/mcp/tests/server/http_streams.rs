//! Streams and sessions: progress, notifications, cancelled calls, and clients that are gone.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use callward_mcp::server::{Anonymous, HttpOptions, router};
use http::Method;
use serde_json::json;
use tower::ServiceExt;

use crate::backend::Bench;
use crate::http::{Events, INITIALIZE, META, PING, Server, call, cancel, json, session_of, status};

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
    let request = server.request(Method::POST).body(body);
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
async fn a_stream_that_breaks_off_is_resumed_after_its_last_event() {
    let server = Server::start().await;
    let session = server.session().await;
    let resumed = |after: &str| server.listen(&session).header("last-event-id", after);
    let token = r#","_meta":{"progressToken":1}"#;
    let in_session = |body: String, version: &str| {
        let request = server.post(body).header("mcp-session-id", &session);
        request.header("mcp-protocol-version", version)
    };
    for (version, primed) in [("2025-11-25", 1), ("2025-06-18", 0)] {
        let mut events = Events::of(in_session(call("1", "steps", token), version)).await;
        let mut ids = Vec::new();
        for _ in 0..=primed {
            ids.push(events.event().await.unwrap().0.unwrap());
        }
        // the connection breaks, and the call goes on: all that follows comes on another one
        drop(events);
        let last = ids.last().unwrap();
        assert!(last.starts_with('c'), "{last}");
        let mut rest = Events::of(resumed(last)).await;
        for step in 2..=3 {
            let report = rest.next().await.unwrap();
            assert_eq!(report["params"]["progress"], f64::from(step));
        }
        assert_eq!(rest.next().await.unwrap()["id"], 1);
        assert!(rest.next().await.is_none());
        // what was sent and lost comes again
        let answer = Events::of(resumed(last)).await.next().await.unwrap();
        assert_eq!(answer["params"]["progress"], 2.0);
    }
    let cases = [("c99-0", 400), ("what", 400), ("s99-5", 200), ("", 200)];
    for (unknown, expected) in cases {
        assert_eq!(status(resumed(unknown)).await, expected, "{unknown}");
    }

    // so is the session's own stream, whose changes meanwhile are not lost
    let mut own = Events::of(server.listen(&session)).await;
    server.bench.change(&["a"]);
    let (id, _) = own.event().await.unwrap();
    drop(own);
    server.bench.change(&["b"]);
    let mut own = Events::of(resumed(&id.unwrap())).await;
    let changed = own.next().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(server.delete(&session).await, 204);
    assert!(own.next().await.is_none());
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
    let both = json!({"toolsListChanged": true, "promptsListChanged": true});
    for (wanted, accepted, changed) in [
        // a list that is not offered now may be later
        (tools, both, Some(changed)),
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

#[tokio::test]
async fn a_session_ends_its_own_calls_only() {
    let server = Server::start().await;
    let (mine, theirs) = (server.session().await, server.session().await);
    let in_session =
        |message: String, session: &str| server.post(message).header("mcp-session-id", session);
    let hold = |id: &str, session: &str| in_session(call(id, "hold", ""), session);
    let waiting = tokio::spawn(hold("1", &mine).send());
    assert_eq!(server.bench.event().await, "started");
    for request in [
        in_session(cancel("1"), &theirs),
        server.post(cancel("1")),
        in_session(cancel(r#""1""#), &mine),
    ] {
        assert_eq!(status(request).await, 202);
    }
    let other = tokio::spawn(hold("2", &theirs).send());
    assert_eq!(server.bench.event().await, "started", "and not: dropped");
    assert_eq!(status(in_session(cancel("2"), &theirs)).await, 202);
    assert_eq!(server.bench.event().await, "dropped");
    let answer = json(other.await.unwrap().unwrap()).await;
    assert_eq!(answer["id"], 2);
    assert_eq!(answer["error"]["data"]["kind"], "cancelled");
    assert_eq!(server.delete(&mine).await, 204);
    assert_eq!(server.bench.event().await, "dropped");
    waiting.await.unwrap().unwrap();
    assert_eq!(status(hold("1", &mine)).await, 404);
    let twice = hold("1", &theirs).header("mcp-session-id", &theirs);
    assert_eq!(status(twice).await, 400, "a second header");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_forgotten_once_it_is_idle_and_has_no_stream() {
    const MINUTE: Duration = Duration::from_secs(60);
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    let router = router(Bench::new(), Arc::<Anonymous>::default(), options);
    // to the router itself, without a socket: time can be paused
    let send = async |method: Method, session: &str, body: &str| {
        let mut request = http::Request::builder().method(method).uri("/mcp");
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("mcp-session-id", session),
        ] {
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        let request = request.body(Body::from(body.to_owned()));
        router.clone().oneshot(request.unwrap()).await.unwrap()
    };
    let initialize = async || send(Method::POST, "", INITIALIZE).await.status().as_u16();
    let session = session_of(send(Method::POST, "", INITIALIZE).await.headers());
    let call = call("1", "large", "");
    let ping = async |body: &str| send(Method::POST, &session, body).await.status().as_u16();
    assert_eq!(ping(&call).await, 200);
    tokio::time::advance(MINUTE * 29).await;
    assert_eq!(ping(PING).await, 200);
    let stream = send(Method::GET, &session, "").await;
    tokio::time::advance(MINUTE * 31).await;
    let refused = send(Method::POST, "", INITIALIZE).await;
    assert_eq!(refused.status(), 503);
    // an idle one would make way after a minute
    assert_eq!(refused.headers()["retry-after"], "60");
    drop(stream);
    // so long it may be resumed
    tokio::time::sleep(MINUTE / 2).await;
    tokio::time::advance(MINUTE / 4).await;
    assert_eq!(initialize().await, 503);
    tokio::time::advance(MINUTE * 30).await;
    assert_eq!(ping(PING).await, 404);
    assert_eq!(initialize().await, 200);
}
