//! Sessions: cancelling in them, ending them, forgetting them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use callward_mcp::server::{HttpOptions, router};
use http::{Method, Request, StatusCode};
use tower::ServiceExt;

use crate::backend::Bench;
use crate::http::{Events, INITIALIZE, Server, call, cancel, json, session_of, status};

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_says_so() {
    let server = Server::start().await;
    let session = server.session().await;
    for meta in ["", r#","_meta":{"progressToken":1}"#] {
        let request = server
            .post(call(r#""a""#, "hold", meta))
            .header("mcp-session-id", &session);
        let waiting = tokio::spawn(request.send());
        assert_eq!(server.bench.event().await, "started");
        let noted = server.post(cancel(r#""a""#));
        assert_eq!(status(noted.header("mcp-session-id", &session)).await, 202);
        assert_eq!(server.bench.event().await, "dropped");
        let answer = waiting.await.unwrap().unwrap();
        let answer = if meta.is_empty() {
            json(answer).await
        } else {
            Events::of(answer).next().await.unwrap()
        };
        assert_eq!(answer["id"], "a");
        assert_eq!(answer["error"]["data"]["kind"], "cancelled");
    }
}

#[tokio::test]
async fn a_session_ends_its_own_calls_only() {
    let server = Server::start().await;
    let (mine, theirs) = (server.session().await, server.session().await);
    let hold = |id: &str, session: &str| {
        let request = server.post(call(id, "hold", ""));
        request.header("mcp-session-id", session)
    };
    let waiting = tokio::spawn(hold("1", &mine).send());
    assert_eq!(server.bench.event().await, "started");
    for request in [
        server.post(cancel("1")).header("mcp-session-id", &theirs),
        server.post(cancel("1")),
        server
            .post(cancel(r#""1""#))
            .header("mcp-session-id", &mine),
    ] {
        assert_eq!(status(request).await, 202);
    }
    let other = tokio::spawn(hold("2", &theirs).send());
    assert_eq!(server.bench.event().await, "started", "and not: dropped");
    other.abort();
    assert_eq!(server.bench.event().await, "dropped");
    let delete = server.client.delete(&server.url);
    assert_eq!(status(delete.header("mcp-session-id", &mine)).await, 204);
    assert_eq!(server.bench.event().await, "dropped");
    waiting.await.unwrap().unwrap();
    assert_eq!(status(hold("1", &mine)).await, 404);
    let twice = hold("1", &theirs).header("mcp-session-id", &theirs);
    assert_eq!(status(twice).await, 400, "a second header");
}

/// Sends a request to the router itself, without a socket: time can then be paused.
async fn send(router: &Router, method: Method, session: Option<&str>, body: &str) -> Response {
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn opened(router: &Router) -> String {
    let answer = send(router, Method::POST, None, INITIALIZE).await;
    session_of(answer.headers())
}

/// Opens a session in which a tool is called.
async fn used(router: &Router) -> String {
    let session = opened(router).await;
    let called = send(router, Method::POST, Some(&session), CALL).await;
    assert_eq!(called.status(), StatusCode::OK);
    session
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const MINUTE: Duration = Duration::from_secs(60);

fn one_session() -> Router {
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    router(Bench::new(), options)
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten_and_a_used_one_is_not() {
    let router = one_session();
    let session = used(&router).await;
    let ping = async || {
        send(&router, Method::POST, Some(&session), PING)
            .await
            .status()
    };
    let initialize = async || send(&router, Method::POST, None, INITIALIZE).await.status();

    tokio::time::advance(MINUTE * 29).await;
    assert_eq!(ping().await, StatusCode::OK);
    tokio::time::advance(MINUTE / 2).await;
    assert_eq!(initialize().await, StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::advance(MINUTE * 30).await;
    assert_eq!(ping().await, StatusCode::NOT_FOUND);
    assert_eq!(initialize().await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_an_open_stream_is_in_use() {
    let router = one_session();
    let session = used(&router).await;
    let stream = send(&router, Method::GET, Some(&session), "").await;
    assert_eq!(stream.status(), StatusCode::OK);
    let initialize = async || send(&router, Method::POST, None, INITIALIZE).await.status();

    tokio::time::advance(MINUTE * 31).await;
    assert_eq!(initialize().await, StatusCode::SERVICE_UNAVAILABLE);
    drop(stream);
    tokio::time::advance(MINUTE / 2).await;
    assert_eq!(initialize().await, StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::advance(MINUTE / 2).await;
    assert_eq!(initialize().await, StatusCode::OK);
}

#[tokio::test]
async fn a_session_is_no_use_to_another_principal() {
    use axum::middleware::{Next, from_fn};
    use callward_core::Principal;

    async fn by_header(mut request: axum::extract::Request, next: Next) -> Response {
        if let Some(user) = request.headers().get("x-user") {
            let principal = Principal::new(user.to_str().unwrap());
            request.extensions_mut().insert(principal);
        }
        next.run(request).await
    }

    let bench = Bench::new();
    let router = router(Arc::clone(&bench), HttpOptions::default()).layer(from_fn(by_header));
    let server = Server::serving(bench, router).await;
    let opened = server.post(INITIALIZE).header("x-user", "ada").send().await;
    let session = session_of(opened.unwrap().headers());
    for (user, expected) in [(Some("ada"), 200), (Some("eve"), 404), (None, 404)] {
        let mut request = server.post(PING).header("mcp-session-id", &session);
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        assert_eq!(status(request).await, expected, "{user:?}");
    }
}
