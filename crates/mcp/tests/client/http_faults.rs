//! What goes wrong over HTTP, and that the next call works all the same.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ServerEvent, ToolServer};
use futures_util::StreamExt;

use crate::script::{LONG, RESULT, assert_fails, call, calling};
use crate::script_http::{JSON, Server, legacy as legacy_http, modern, upstream_at};

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
    let running = calling(&upstream, call("x", "{}"));
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
        let (upstream, mut server) = legacy_http("one").await;
        let running = calling(&upstream, call("x", "{}"));
        let asked = server.asked("tools/call").await;
        asked.answer(400, "", &body).await;
        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.delivery(), Delivery::Answered, "{error}");
        assert!(error.message().contains(words), "{error}");
        let running = calling(&upstream, call("x", "{}"));
        server.greet_legacy("two").await;
        let asked = server.asked("tools/call").await;
        assert_eq!(asked.headers["mcp-session-id"], "two");
        asked.result(RESULT).await;
        running.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_404_that_answers_the_call_itself_loses_no_session() {
    let (upstream, mut server) = legacy_http("s").await;
    // it was read, and may have been run
    let error = server
        .fail(&upstream, |asked| asked.refuse(404, -32602))
        .await;
    assert_fails(&error, ErrorKind::InvalidCall, Delivery::Answered);
    assert_eq!(error.code(), Some(-32602));
    // the same from a server that lost the session, and names the request it refuses for that
    let running = calling(&upstream, call("x", "{}"));
    let asked = server.asked("tools/call").await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32001,"message":"Session not found"}}}}"#,
        asked.id()
    );
    asked.answer(404, JSON, &body).await;
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::SessionLost, Delivery::Unknown);
}

#[tokio::test]
async fn refused_headers_are_believed_with_their_status_only() {
    // passed on from somewhere, for a call that may have run; before 2026-07-28 this number was any
    // server's to use
    for (upstream, mut server) in [modern().await, legacy_http("s").await] {
        let error = server
            .fail(&upstream, |asked| asked.refuse(200, -32020))
            .await;
        assert_fails(&error, ErrorKind::Protocol, Delivery::Answered);
        assert_eq!(error.code(), Some(-32020));
    }
}
