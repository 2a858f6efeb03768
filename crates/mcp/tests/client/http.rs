//! Calls, listings and greetings over HTTP.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    BaggageFilter, Delivery, ErrorKind, List, ServerEvent, ToolCall, ToolServer, TraceContext,
};
use callward_mcp::client::{HttpSpec, Target, UpstreamStatus};
use callward_mcp::wire::Era;
use futures_util::StreamExt;
use serde_json::json;

use crate::failures::assert_documented;
use crate::script::{
    DISCOVERED_LISTENING, LONG, Reports, Watching, assert_fails, call, calling, progress, start,
    tool_of,
};
use crate::script_http::{Exchange, JSON, Server, legacy as legacy_http, modern};

const RESULT: &str =
    r#"{ "content":[{"type":"hologram","x": 1.00}] ,"isError":false, "vendor":[ ]}"#;

#[tokio::test]
async fn a_modern_call_carries_its_headers_and_its_bytes() {
    let mut server = Server::start().await;
    let spec = HttpSpec::new(&format!("http://{}/mcp", server.address))
        .and_then(|spec| spec.with_header("authorization", "Bearer x"))
        .unwrap();
    let upstream = start(Target::Http(spec), |_| {});
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
    let tool = tool_of(
        r#"{"name":"réserver","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"}}}}"#,
    );
    let arguments = r#"{ "n": 1e2,"region":"eu" }"#;
    let running = calling(&upstream, ToolCall::new(tool, arguments));
    let asked = server.asked("tools/call").await;
    let header = |name: &str| asked.headers.get(name).map(String::as_str);
    assert_eq!(header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(header("mcp-method"), Some("tools/call"));
    assert_eq!(header("mcp-name"), Some("=?base64?csOpc2VydmVy?="));
    assert_eq!(header("mcp-param-region"), Some("eu"));
    assert_eq!(header("authorization"), Some("Bearer x"));
    let both = "application/json, text/event-stream";
    assert_eq!(header("accept"), Some(both));
    assert_eq!(header("mcp-session-id"), None);
    assert!(asked.body.contains(arguments), "{}", asked.body);
    let meta = &asked.json()["params"]["_meta"];
    let version = &meta["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28");
    asked.result(RESULT).await;
    let output = running.await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(output.body()).unwrap(), RESULT);
}

#[tokio::test]
async fn a_secret_that_a_server_repeats_in_an_error_is_hidden() {
    let mut server = Server::start().await;
    let spec = HttpSpec::new(&format!("http://{}/mcp?key=s3cr3t-qu3ry", server.address))
        .and_then(|spec| spec.with_header("authorization", "Bearer s3cr3t-t0k3n"))
        .and_then(|spec| spec.with_header("x-tenant", "short"))
        .and_then(|spec| spec.with_header("x-account", "1234567890"))
        .unwrap();
    let upstream = start(Target::Http(spec), |_| {});
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    let rpc = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no s3cr3t-t0k3n, short","data":["Bearer s3cr3t\u002dt0k3n",1234567890]}}}}"#
        )
    };
    let text = "content-type: text/plain\r\n";
    let hidden = "no [redacted], short";
    let (url, odd) = (
        "no /mcp?key=s3cr3t-qu3ry",
        "content-type: a/s3cr3t-t0k3n\r\n",
    );
    for (status, headers, body, expected) in [
        (200, JSON, rpc("ID"), hidden),
        (500, JSON, rpc("ID"), hidden),
        (500, JSON, rpc("null"), hidden),
        (503, text, "no s3cr3t-t0k3n, short".to_owned(), hidden),
        (503, text, "no s3cr3t%2Dt0k\n3n, short".to_owned(), hidden),
        (500, text, url.to_owned(), "no /mcp?key=[redacted]"),
        (200, odd, String::new(), "a/[redacted]"),
    ] {
        let answer = async |asked: Exchange| {
            let body = body.replace("ID", &asked.id());
            asked.answer(status, headers, &body).await;
        };
        let error = server.fail(&upstream, answer).await;
        assert!(error.message.contains(expected), "{error}");
        let all = format!("{error:?}{:?}", error.data);
        assert!(
            !all.contains("s3cr3t") && !all.contains("1234567890"),
            "{all}"
        );
        if let Some(data) = &error.data {
            serde_json::from_slice::<serde_json::Value>(data).unwrap();
        }
    }
}

#[tokio::test]
async fn a_legacy_server_is_found_out_by_what_it_refuses() {
    // the Python SDK refuses a request without a session before it reads the id
    let python = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#;
    for (status, code, words) in [
        (400, None, "what?"),
        (400, None, python),
        (404, None, "what?"),
        (405, None, "what?"),
        (200, Some(-32601), ""),
    ] {
        let mut server = Server::start().await;
        let upstream = server.upstream(|_| {});
        let probe = server.asked("server/discover").await;
        match code {
            Some(code) => probe.refuse(status, code).await,
            None => probe.answer(status, "", words).await,
        }
        let headers = server.initialize("s-1").await;
        for modern in ["mcp-method", "mcp-protocol-version", "mcp-session-id"] {
            assert!(!headers.contains_key(modern), "{modern}");
        }
        upstream.ready(LONG).await.unwrap();
        let asked = server.serve(&upstream, call("x", "{}")).await;
        assert_eq!(asked.headers["mcp-session-id"], "s-1");
        assert_eq!(asked.headers["mcp-protocol-version"], "2025-11-25");
        assert!(!asked.headers.contains_key("mcp-name"));
        let closing = upstream.clone();
        let closing = tokio::spawn(async move { closing.shutdown().await });
        let delete = server.next().await;
        assert_eq!(delete.method, "DELETE");
        assert_eq!(delete.headers["mcp-session-id"], "s-1");
        delete.answer(200, "", "").await;
        closing.await.unwrap();
        assert_eq!(upstream.status(), UpstreamStatus::Closed);
        let error = upstream.call(call("x", "{}")).await.unwrap_err();
        assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    }
}

#[tokio::test]
async fn a_call_whose_session_is_lost_is_not_sent_again_here() {
    // the call may have run before the answer
    let json = |id: &str, code, words: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{words}"}}}}"#)
    };
    let python = "\"server-error\"";
    let words = "Bad Request: No valid session ID provided";
    for (status, body) in [
        (404, String::new()),
        (404, "<html>not found</html>".into()),
        (404, "session not found".into()),
        (404, json(python, -32600, "Session not found")),
        (404, json(python, -32001, "gone")),
        (404, json("ASKED", -32001, "Session not found")),
        // where the protocol requires 404
        (400, json("null", -32000, words)),
        (400, json(python, -32000, words)),
        (400, words.into()),
    ] {
        let (upstream, mut server) = legacy_http("one").await;
        let lost = async |asked: Exchange| {
            let body = body.replace("ASKED", &asked.id());
            asked.answer(status, JSON, &body).await;
        };
        let error = server.fail_once(&upstream, lost).await;
        // the next call has a new session
        let running = calling(&upstream, call("x", "{}"));
        if status == 404 {
            assert_documented("the server forgets the session of the call", &error);
            server.initialize("two").await;
        } else {
            assert_eq!(error.delivery, Delivery::Answered, "{error}");
            assert!(error.message.contains(words), "{error}");
            server.greet_legacy("two").await;
        }
        let asked = server.answer(running).await;
        assert_eq!(asked.headers["mcp-session-id"], "two");
    }
}

#[tokio::test]
async fn an_unsafe_call_in_a_session_in_doubt_follows_a_ping() {
    for doubt in ["idle", "broken", "no stream"] {
        let (upstream, mut server) = legacy_http("one").await;
        let mut stream = server.stream().await;
        match doubt {
            "idle" => {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(31)).await;
                tokio::time::resume();
            }
            "broken" => {
                let error = server.fail_once(&upstream, async |asked| drop(asked)).await;
                assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
            }
            _ => {
                stream.events().await;
                drop(stream);
                stream = server.stream().await;
            }
        }
        let running = calling(&upstream, call("x", "{}"));
        let ping = server.asked("ping").await;
        if doubt == "broken" {
            // in place of 404
            ping.answer(400, "", "no valid session ID provided").await;
            server.greet_legacy("two").await;
        } else {
            ping.answer(404, "", "").await;
            server.initialize("two").await;
        }
        let asked = server.answer(running).await;
        assert_eq!(asked.headers["mcp-session-id"], "two");
        // the session has just answered
        server.serve(&upstream, call("x", "{}")).await;
        drop(stream);
    }
}

#[tokio::test]
async fn calls_whose_session_is_lost_share_the_next_one() {
    let (upstream, mut server) = legacy_http("one").await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    for is_lost in [true, false] {
        let running: Vec<_> = (0..8)
            .map(|_| calling(&upstream, call("x", "{}")))
            .collect();
        if !is_lost {
            // one session for all of them
            server.initialize("two").await;
        }
        let mut asked = Vec::new();
        for _ in 0..8 {
            asked.push(server.asked("tools/call").await);
        }
        for asked in asked {
            match is_lost {
                true => asked.answer(404, "", "").await,
                false => asked.result(RESULT).await,
            }
        }
        for running in running {
            assert_eq!(running.await.unwrap().is_err(), is_lost);
        }
        if is_lost {
            assert_eq!(
                events.next().await,
                Some(ServerEvent::ListChanged(List::Tools))
            );
        }
    }
}

#[tokio::test]
async fn an_answer_may_come_as_events_with_others_before_it() {
    let (upstream, mut server) = legacy_http("s").await;
    let sink = Arc::new(Reports::default());
    let running = calling(&upstream, call("x", "{}").with_progress(sink.clone()));
    let mut asked = server.asked("tools/call").await;
    let token = asked.json()["params"]["_meta"]["progressToken"].clone();
    let report = format!(r#"{{"progressToken":{token},"progress":1.0}}"#);
    asked.events().await;
    let others = "id: 7\r\ndata: \r\n\r\n: comment\r\n\r\n";
    asked.write(others).await;
    asked.event(&progress(&report)).await;
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage"}"#;
    asked.event(question).await;
    let reply = server.next().await;
    assert_eq!(reply.json()["error"]["code"], -32601);
    assert_eq!(reply.json()["id"], "q");
    assert_eq!(reply.headers["mcp-session-id"], "s");
    reply.answer(202, "", "").await;
    asked.end(RESULT).await;
    let output = running.await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(output.body()).unwrap(), RESULT);
    assert_eq!(*sink.0.lock(), [report]);
}

#[tokio::test]
async fn stale_headers_are_rebuilt_from_a_fresh_list_for_the_next_attempt() {
    let (upstream, mut server) = modern().await;
    let eu = || call("x", r#"{"region":"eu"}"#);
    let running = calling(&upstream, eu());
    let asked = server.asked("tools/call").await;
    assert!(!asked.headers.contains_key("mcp-param-region"));
    asked.refuse(400, -32020).await;
    let list = server.asked("tools/list").await;
    assert_eq!(list.headers["mcp-method"], "tools/list");
    list.result(
        r#"{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"}}}}]}"#,
    )
    .await;
    // the server may have run it: only the retry layer knows whether to send it again
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
    assert_eq!(error.code, Some(-32020));
    let asked = server.serve(&upstream, eu()).await;
    assert_eq!(asked.headers["mcp-param-region"], "eu");
}

#[tokio::test]
async fn a_modern_server_is_asked_again_to_announce_changes() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|_| {});
    server.greet_modern_with(DISCOVERED_LISTENING).await;
    let mut listen = server.asked("subscriptions/listen").await;
    let wanted = &listen.json()["params"]["notifications"];
    assert_eq!(*wanted, json!({"toolsListChanged": true}));
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    listen.events().await;
    listen.event(changed).await;
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    drop(listen); // the stream ends; events until the next one are lost
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    server.asked("subscriptions/listen").await;
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[tokio::test]
async fn what_is_carried_of_a_trace_stands_in_headers_too() {
    let (upstream, mut server) = legacy_http("one").await;
    let trace = TraceContext::parse(PARENT, Some("k=v")).unwrap();
    let baggage = BaggageFilter::new(["tenant"]).unwrap().pass("tenant=acme");
    let mut traced = call("x", "{}");
    traced.context_mut().trace = Some(Arc::new(trace));
    traced.context_mut().baggage = baggage;
    let watching = Arc::new(Watching::default());
    traced.attempt_mut().watch = Some(watching.clone());
    let asked = server.serve(&upstream, traced).await;
    let reported = r#"tcp Some("2025-11-25") Some("one") Some("127.0.0.1") Some("1.1") true"#;
    assert_eq!(*watching.seen.lock(), [reported]);
    let meta = asked.json()["params"]["_meta"].clone();
    for (name, value) in [
        ("traceparent", PARENT),
        ("tracestate", "k=v"),
        ("baggage", "tenant=acme"),
    ] {
        assert_eq!((&meta[name], &*asked.headers[name]), (&json!(value), value));
    }
}
