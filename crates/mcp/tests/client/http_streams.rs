//! What legacy servers ask of us, and streams that are resumed.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, List, ServerEvent, ToolServer};
use callward_mcp::client::Upstream;
use futures_util::StreamExt;

use crate::script::{INITIALIZED, LEGACY, RESULT, Reports, assert_fails, call, calling, progress};
use crate::script_http::{Server, legacy as legacy_http};

/// At most eight notices are sent at once, for a second each, and none that has waited for five.
const MOST_NOTICES: usize = 8 * 6;
/// More than that, and fewer than wait in the queue.
const FLOOD: usize = 200;

/// A legacy server in session `s` that offers no stream of its own.
async fn legacy() -> (Upstream, Server) {
    let (upstream, mut server) = legacy_http("s").await;
    server.stream().await.answer(405, "", "").await;
    (upstream, server)
}

fn request(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}"}}"#)
}

#[tokio::test]
async fn a_flood_of_requests_gets_a_bounded_number_of_replies() {
    let (upstream, mut server) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    let mut asked = server.asked("tools/call").await;
    asked.events().await;
    asked
        .event(&request(&"i".repeat(20_000), "roots/list"))
        .await;
    for number in 0..FLOOD {
        asked
            .event(&request(&number.to_string(), "roots/list"))
            .await;
    }
    asked.end(RESULT).await;
    running.await.unwrap().unwrap();
    let running = calling(&upstream, call("x", "{}"));
    let mut replies = Vec::new();
    let asked = loop {
        let asked = server.next().await;
        match asked.json()["method"] == "tools/call" {
            true => break asked,
            false => replies.push(asked),
        }
    };
    asked.result(RESULT).await;
    running.await.unwrap().unwrap();
    assert!(!replies.is_empty());
    assert!(replies.len() <= MOST_NOTICES, "{}", replies.len());
    for reply in &replies {
        assert_eq!(reply.json()["error"]["code"], -32601, "{reply:?}");
        assert!(reply.body.len() < 20_000, "an id that is too long");
    }
}

#[tokio::test]
async fn what_comes_on_a_stream_of_the_server_s_own_is_heard_and_answered() {
    let (upstream, mut server) = legacy_http("s").await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let mut get = server.stream().await;
    assert_eq!(get.headers["mcp-session-id"], "s");
    get.events().await;
    get.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
        .await;
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    for (method, member) in [("ping", "result"), ("sampling/createMessage", "error")] {
        get.event(&request(method, method)).await;
        let reply = server.next().await;
        assert_eq!(reply.json()["id"], method);
        assert!(reply.json().get(member).is_some(), "{reply:?}");
        reply.answer(202, "", "").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_stream_is_reopened_after_an_event_that_is_too_long() {
    let (_upstream, mut server) = legacy_http("s").await;
    let endless = "x".repeat(256 << 10);
    for start in ["data: ", ": "] {
        let mut get = server.stream().await;
        get.events().await;
        get.write(&format!("{start}{endless}")).await;
        get.closed().await;
    }
    server.stream().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_closed_before_the_answer_is_resumed() {
    let (upstream, mut server) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    let mut asked = server.asked("tools/call").await;
    let id = asked.id();
    asked.events().await;
    asked.write("id: one\nretry: 300\ndata:\n\n").await;
    drop(asked);
    for (after, next) in [("one", "id: two\ndata:\n\n"), ("two", "")] {
        let mut get = server.stream().await;
        assert_eq!(get.headers["last-event-id"], after);
        assert_eq!(get.headers["mcp-session-id"], "s");
        get.events().await;
        get.write(next).await;
    }
    let mut get = server.stream().await;
    assert_eq!(get.headers["last-event-id"], "two");
    get.events().await;
    let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#);
    get.event(&result).await;
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_resumed_leaves_the_outcome_unknown() {
    let (upstream, mut server) = legacy().await;
    for (start, resumes) in [("data:\n\n", false), ("id: one\ndata:\n\n", true)] {
        let running = calling(&upstream, call("x", "{}"));
        if resumes {
            // the last loss may have been that of the session
            server.asked("ping").await.result("{}").await;
        }
        let mut asked = server.asked("tools/call").await;
        asked.events().await;
        asked.write(start).await;
        drop(asked);
        if resumes {
            let get = server.stream().await;
            assert_eq!(get.headers["last-event-id"], "one");
            get.answer(405, "", "").await;
        }
        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.delivery, Delivery::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_is_resumed_a_few_times() {
    const HEAD: &str =
        "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    for is_answered in [true, false] {
        let (upstream, mut server) = legacy().await;
        let running = calling(&upstream, call("x", "{}"));
        let mut asked = server.asked("tools/call").await;
        let id = asked.id();
        asked.write(HEAD).await;
        asked
            .write(&chunk("retry: 9000000\nid: one\ndata:\n\n"))
            .await;
        let since = tokio::time::Instant::now();
        drop(asked);
        server.stream().await.answer(503, "", "").await;
        assert!(since.elapsed() <= Duration::from_secs(31), "a bounded wait");
        let mut get = server.stream().await;
        get.write(HEAD).await;
        drop(get);
        let mut get = server.stream().await;
        assert_eq!(get.headers["last-event-id"], "one");
        get.events().await;
        if is_answered {
            let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#);
            get.event(&result).await;
            running.await.unwrap().unwrap();
        } else {
            // an event that is no text cannot be had again
            get.write_bytes(b"id: two\ndata: \xff\n\n").await;
            let error = running.await.unwrap().unwrap_err();
            assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
        }
    }
    let (upstream, mut server) = legacy().await;
    let running = calling(&upstream, call("x", "{}"));
    let mut asked = server.asked("tools/call").await;
    asked.write(HEAD).await;
    asked.write(&chunk("id: one\ndata:\n\n")).await;
    drop(asked);
    for _ in 0..3 {
        drop(server.stream().await);
    }
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_server_s_own_is_resumed_as_long_as_it_knows_the_event() {
    let (_upstream, mut server) = legacy_http("s").await;
    let mut get = server.stream().await;
    get.events().await;
    get.write("id: one\ndata:\n\n").await;
    drop(get);
    let get = server.stream().await;
    assert_eq!(get.headers["last-event-id"], "one");
    get.answer(400, "", "").await;
    let get = server.stream().await;
    assert!(!get.headers.contains_key("last-event-id"));
}

#[tokio::test]
async fn progress_on_the_stream_of_the_session_reaches_its_call() {
    let mut server = Server::start().await;
    let upstream = server.upstream(LEGACY);
    server.asked("initialize").await.result(INITIALIZED).await;
    let ready = server.asked("notifications/initialized").await;
    ready.answer(202, "", "").await;
    let mut get = server.stream().await;
    get.events().await;
    let (one, other) = (Arc::new(Reports::default()), Arc::new(Reports::default()));
    for sink in [&one, &other] {
        let running = calling(&upstream, call("x", "{}").with_progress(sink.clone()));
        let asked = server.asked("tools/call").await;
        let token = asked.json()["params"]["_meta"]["progressToken"].clone();
        let report = format!(r#"{{"progressToken":{token},"progress":1.0}}"#);
        let other = progress(r#"{"progressToken":4711,"progress":9}"#);
        get.event(&other).await;
        get.event(&progress(&report)).await;
        while sink.0.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*sink.0.lock(), std::slice::from_ref(&report));
        asked.result(RESULT).await;
        running.await.unwrap().unwrap();
        get.event(&progress(&report)).await; // too late
    }
    assert_eq!(one.0.lock().len(), 1);
}
