//! What goes wrong over HTTP, and that the next call works all the same.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ServerEvent, ToolError, ToolServer};
use callward_mcp::client::Upstream;
use futures_util::StreamExt;

use crate::script::{assert_fails, call};
use crate::script_http::{Exchange, Server, upstream_at};

const LONG: Duration = Duration::from_secs(60);
const RESULT: &str = r#"{"content":[]}"#;

async fn modern() -> (Upstream, Server) {
    let mut server = Server::start().await;
    let upstream = server.upstream().start();
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    (upstream, server)
}

/// Makes a call that fails as the server wants, then one that works.
async fn fails_once<Fut: Future<Output = ()>>(
    upstream: &Upstream,
    server: &mut Server,
    fault: impl FnOnce(Exchange) -> Fut,
) -> ToolError {
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    fault(server.asked("tools/call").await).await;
    let error = running.await.unwrap().unwrap_err();
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    server.asked("tools/call").await.result(RESULT).await;
    running.await.unwrap().unwrap();
    error
}

#[tokio::test]
async fn a_refusal_by_status_is_an_answer_and_passes() {
    let (upstream, mut server) = modern().await;
    let cases = [
        (401, ErrorKind::Unauthorized),
        (403, ErrorKind::Unauthorized),
        (404, ErrorKind::InvalidCall),
        (429, ErrorKind::RateLimited),
        (500, ErrorKind::ServerFault),
        (502, ErrorKind::ServerFault),
        (503, ErrorKind::ServerFault),
    ];
    for (status, kind) in cases {
        let error = fails_once(&upstream, &mut server, |asked| {
            asked.answer(status, "retry-after: 7\r\n", "<html>")
        })
        .await;
        assert_fails(&error, kind, Delivery::Answered);
        assert_eq!(error.code(), Some(i64::from(status)));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }
    let error = fails_once(&upstream, &mut server, |asked| asked.refuse(400, -32602)).await;
    assert_fails(&error, ErrorKind::InvalidCall, Delivery::Answered);
    assert_eq!(error.code(), Some(-32602));
    let error = fails_once(&upstream, &mut server, |asked| {
        let location = "location: http://ada:pw@else.test/where?code=s3cret#s3cret\r\n";
        asked.answer(307, location, "")
    })
    .await;
    assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
    assert!(error.message().contains("else.test/where"), "{error}");
    assert!(!error.message().contains("s3cret"), "{error}");
    assert!(!error.message().contains("pw"), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_after_sending_leaves_the_outcome_unknown() {
    let (upstream, mut server) = modern().await;
    let error = fails_once(&upstream, &mut server, async |asked| drop(asked)).await;
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
    let error = fails_once(&upstream, &mut server, async |mut asked| {
        asked
            .write(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
            )
            .await;
    })
    .await;
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
    let error = fails_once(&upstream, &mut server, async |mut asked| {
        asked.events().await;
        asked.event(r#"{"jsonrpc":"2.0","method":"x"}"#).await;
    })
    .await;
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
    // whatever the lengths say, this is not all of it
    let error = fails_once(&upstream, &mut server, |asked| {
        asked.answer(200, "content-type: application/json\r\n", r#"{"id":1,"re"#)
    })
    .await;
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_fault_of_the_protocol() {
    let (upstream, mut server) = modern().await;
    let json = "content-type: application/json\r\n";
    for (status, headers, body) in [
        (200, json, "}"),
        (200, "content-type: text/html\r\n", "<html>"),
        (200, "content-type: application/json-evil\r\n", "{}"),
        (202, "", ""),
    ] {
        let error = fails_once(&upstream, &mut server, |asked| {
            asked.answer(status, headers, body)
        })
        .await;
        assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
    }
    let error = fails_once(&upstream, &mut server, |asked| asked.result("[1]")).await;
    assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
}

#[tokio::test]
async fn an_answer_to_another_request_leaves_the_outcome_unknown() {
    let (upstream, mut server) = modern().await;
    for (status, body) in [
        (200, r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#),
        (
            404,
            r#"{"jsonrpc":"2.0","id":4711,"error":{"code":-32601,"message":"no"}}"#,
        ),
    ] {
        let error = fails_once(&upstream, &mut server, |asked| {
            asked.answer(status, "content-type: application/json\r\n", body)
        })
        .await;
        assert_fails(&error, ErrorKind::Protocol, Delivery::Unknown);
    }
}

#[tokio::test]
async fn a_server_that_restarts_on_its_port_is_found_again() {
    let (upstream, server) = modern().await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let address = server.stop().await;
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));
    let mut server = Server::start_at(address).await;
    // Either the probe or the call comes first: both are let through.
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    let answering = tokio::spawn(async move {
        loop {
            let asked = server.next().await;
            match asked.json()["method"].as_str() {
                Some("tools/call") => asked.result(RESULT).await,
                _ => asked.result(crate::script::DISCOVERED).await,
            }
        }
    });
    running.await.unwrap().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    answering.abort();
}

#[tokio::test]
async fn a_server_that_is_back_is_noticed_without_a_call() {
    let (upstream, server) = modern().await;
    let mut events = upstream.events().unwrap();
    events.next().await;
    let address = server.stop().await;
    upstream.call(call("x", "{}")).await.unwrap_err();
    assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));
    let mut server = Server::start_at(address).await;
    server.greet_modern().await; // the probe
    assert_eq!(events.next().await, Some(ServerEvent::Up));
}

#[tokio::test]
async fn a_server_that_starts_late_is_found() {
    let server = Server::start().await;
    let address = server.stop().await;
    let upstream = upstream_at(address).start();
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    let mut server = Server::start_at(address).await;
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
}

#[tokio::test]
async fn what_fails_in_the_greeting_leaves_the_call_unsent() {
    let mut server = Server::start().await;
    let upstream = server.upstream().start();
    let refuse_all = tokio::spawn(async move {
        loop {
            server
                .next()
                .await
                .answer(503, "retry-after: 3\r\n", "")
                .await;
        }
    });
    let error = upstream.call(call("x", "{}")).await.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert_eq!(error.code(), Some(503));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    refuse_all.abort();
}

#[tokio::test]
async fn a_400_for_a_lost_session_opens_another_with_the_next_call() {
    let words = "Bad Request: No valid session ID provided";
    let json = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{words}"}}}}"#)
    };
    for body in [json("null"), json("\"server-error\""), words.to_owned()] {
        let mut server = Server::start().await;
        let upstream = server.upstream().start();
        server.greet_legacy("one").await;
        upstream.ready(LONG).await.unwrap();
        let running = tokio::spawn(upstream.call(call("x", "{}")));
        let asked = server.asked("tools/call").await;
        asked.answer(400, "", &body).await;
        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.delivery(), Delivery::Answered, "{error}");
        assert!(error.message().contains(words), "{error}");
        let running = tokio::spawn(upstream.call(call("x", "{}")));
        server.greet_legacy("two").await;
        let asked = server.asked("tools/call").await;
        assert_eq!(asked.headers["mcp-session-id"], "two");
        asked.result(RESULT).await;
        running.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused() {
    let mut server = Server::start().await;
    let upstream = server.upstream().max_message(1024).start();
    server.greet_modern().await;
    upstream.ready(LONG).await.unwrap();
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(2000));
    let error = fails_once(&upstream, &mut server, |asked| asked.result(&long)).await;
    assert_fails(&error, ErrorKind::TooLarge, Delivery::Answered);
    let error = fails_once(&upstream, &mut server, async |mut asked| {
        asked.events().await;
        asked.event(&long).await;
    })
    .await;
    assert_fails(&error, ErrorKind::TooLarge, Delivery::Answered);
    for word in ["1024", "max_message"] {
        assert!(error.message().contains(word), "{error}");
    }
}

#[tokio::test]
async fn a_404_that_answers_the_call_itself_loses_no_session() {
    let mut server = Server::start().await;
    let upstream = server.upstream().start();
    server.greet_legacy("s").await;
    upstream.ready(LONG).await.unwrap();
    // it was read, and may have been run
    let error = fails_once(&upstream, &mut server, |asked| asked.refuse(404, -32602)).await;
    assert_fails(&error, ErrorKind::InvalidCall, Delivery::Answered);
    assert_eq!(error.code(), Some(-32602));
    // the same from a server that lost the session, and names the request it refuses for that
    let running = tokio::spawn(upstream.call(call("x", "{}")));
    let asked = server.asked("tools/call").await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32001,"message":"Session not found"}}}}"#,
        asked.id()
    );
    asked
        .answer(404, "content-type: application/json\r\n", &body)
        .await;
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::SessionLost, Delivery::Unknown);
}

#[tokio::test]
async fn refused_headers_are_believed_with_the_status_the_protocol_has_for_them() {
    let (upstream, mut server) = modern().await;
    // passed on from somewhere, for a call that may have run
    let error = fails_once(&upstream, &mut server, |asked| asked.refuse(200, -32020)).await;
    assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
    assert_eq!(error.code(), Some(-32020));
}

#[tokio::test]
async fn a_legacy_server_s_own_error_is_no_reason_to_send_the_call_again() {
    let mut server = Server::start().await;
    let upstream = server.upstream().start();
    server.greet_legacy("s").await;
    upstream.ready(LONG).await.unwrap();
    // before 2026-07-28 this number was any server's to use, for a call that ran too
    let error = fails_once(&upstream, &mut server, |asked| asked.refuse(200, -32020)).await;
    assert_eq!(error.delivery(), Delivery::Answered);
    assert_eq!(error.code(), Some(-32020));
}
