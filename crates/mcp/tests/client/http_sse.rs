//! Servers of 2024-11-05, whose answers come on one event stream.

use std::sync::Arc;

use callward_core::{Delivery, ErrorKind, List, ServerEvent, ToolServer};
use callward_mcp::client::Upstream;
use futures_util::StreamExt;

use crate::instances;
use crate::script::{
    INITIALIZED, LEGACY, LONG, RESULT, Reports, assert_fails, call, calling, progress,
};
use crate::script_http::{Exchange, Server};

const MESSAGES: &str = "/messages?session=1";

/// Refuses the greeting with POST, and opens a stream that names this endpoint.
async fn open(server: &mut Server, endpoint: &str) -> Exchange {
    server.asked("initialize").await.answer(405, "", "").await;
    let mut get = server.stream().await;
    assert_eq!((&get.path[..], &get.body[..]), ("/mcp", ""));
    get.events().await;
    get.write(&format!("event: endpoint\r\ndata: {endpoint}\r\n\r\n"))
        .await;
    get
}

/// Takes a POST, whose answer comes on the stream.
async fn posted(server: &mut Server, method: &str) -> String {
    let asked = server.asked(method).await;
    assert_eq!(asked.path, MESSAGES);
    let id = asked.id();
    asked.answer(202, "", "Accepted").await;
    id
}

async fn answer(get: &mut Exchange, id: &str, result: &str) {
    get.event(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
    .await;
}

async fn down(upstream: &Upstream) -> String {
    match upstream.events().unwrap().next().await {
        Some(ServerEvent::Down(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

async fn greet(server: &mut Server) -> Exchange {
    let mut get = open(server, MESSAGES).await;
    let id = posted(server, "initialize").await;
    answer(
        &mut get,
        &id,
        &INITIALIZED.replace("2025-11-25", "2024-11-05"),
    )
    .await;
    posted(server, "notifications/initialized").await;
    get
}

async fn greeted(spare: usize) -> (Upstream, Server, Exchange) {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| {
        (options.max_message, options.spare) = (4096, spare);
    });
    let probe = server.asked("server/discover").await;
    probe.answer(404, "", "").await;
    let get = greet(&mut server).await;
    upstream.ready(LONG).await.unwrap();
    (upstream, server, get)
}

#[tokio::test]
async fn all_that_a_server_says_on_its_one_stream_is_heard() {
    let (upstream, mut server, mut get) = greeted(1).await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let sink = Arc::new(Reports::default());
    let one = calling(&upstream, call("x", "{}").with_progress(sink.clone()));
    let first = posted(&mut server, "tools/call").await;
    let two = calling(&upstream, call("x", "{}"));
    // this one is answered before its POST is
    let late = server.asked("tools/call").await;
    answer(&mut get, &late.id(), RESULT).await;
    two.await.unwrap().unwrap();
    late.answer(202, "", "").await;
    let report = format!(r#"{{"progressToken":{first},"progress":1.0}}"#);
    get.event(&progress(&report)).await;
    get.write("event: message\ndata: no message\n\n").await;
    get.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
        .await;
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    assert_eq!(*sink.0.lock(), [report]);
    get.event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)
        .await;
    let reply = server.next().await;
    assert_eq!((&reply.path[..], &reply.id()[..]), (MESSAGES, r#""p""#));
    answer(&mut get, &first, RESULT).await;
    one.await.unwrap().unwrap();
    let given_up = calling(&upstream, call("x", "{}"));
    posted(&mut server, "tools/call").await;
    given_up.abort();
    posted(&mut server, "notifications/cancelled").await;
}

#[tokio::test]
async fn a_lost_stream_loses_its_calls_and_is_opened_again() {
    let (upstream, mut server, get) = greeted(1).await;
    let running = calling(&upstream, call("x", "{}"));
    posted(&mut server, "tools/call").await;
    drop(get);
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);

    // an answer that is too long, and a server that forgets the session, end the stream too
    let running = calling(&upstream, call("x", "{}"));
    let probe = server.asked("server/discover").await;
    probe.answer(404, "", "").await;
    let mut get = greet(&mut server).await;
    let id = posted(&mut server, "tools/call").await;
    let long = format!("\"{}\"", "x".repeat(5000));
    answer(&mut get, &id, &long).await;
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::TooLarge, Delivery::Answered);
    get.closed().await;

    let running = calling(&upstream, call("x", "{}"));
    let probe = server.asked("server/discover").await;
    probe.answer(404, "", "").await;
    let get = greet(&mut server).await;
    let asked = server.asked("tools/call").await;
    asked.answer(404, "", "Could not find session").await;
    let error = running.await.unwrap().unwrap_err();
    assert_fails(&error, ErrorKind::SessionLost, Delivery::Unknown);
    get.closed().await;

    let running = calling(&upstream, call("x", "{}"));
    let mut get = greet(&mut server).await;
    let id = posted(&mut server, "tools/call").await;
    answer(&mut get, &id, RESULT).await;
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_endpoint_elsewhere_gets_no_message() {
    for (endpoint, word) in [
        ("http://127.0.0.1:1/messages", "is not at http://127.0.0.1:"),
        (
            "//else.where/messages?key=secret",
            "http://else.where/messages",
        ),
        ("http://[", "cannot be used"),
    ] {
        let mut server = Server::start().await;
        let upstream = server.upstream(LEGACY);
        let get = open(&mut server, endpoint).await;
        let reason = down(&upstream).await;
        assert!(reason.contains(word), "{reason}");
        assert!(!reason.contains("secret"), "{reason}");
        get.closed().await;
    }
}

#[tokio::test]
async fn a_stream_that_names_no_endpoint_leaves_the_refusal() {
    let mut server = Server::start().await;
    let upstream = server.upstream(LEGACY);
    let hello = server.asked("initialize").await;
    hello.answer(400, "", "Bad Request: no version").await;
    let mut get = server.stream().await;
    get.events().await;
    get.event("{}").await;
    let reason = down(&upstream).await;
    assert!(reason.contains("no version"), "{reason}");
}

#[tokio::test]
async fn each_owner_has_a_stream() {
    let (upstream, mut server, mut first) = greeted(0).await;
    let owned = |session| instances::call(&instances::caller("ada", session), false);
    let running = calling(&upstream, owned("1"));
    let id = posted(&mut server, "tools/call").await;
    answer(&mut first, &id, RESULT).await;
    running.await.unwrap().unwrap();
    let running = calling(&upstream, owned("2"));
    let mut second = greet(&mut server).await;
    let id = posted(&mut server, "tools/call").await;
    answer(&mut second, &id, RESULT).await;
    running.await.unwrap().unwrap();
    upstream.session_ended(&instances::caller("ada", "2"));
    second.closed().await;
    upstream.shutdown().await;
    first.closed().await;
}
