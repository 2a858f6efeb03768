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
use crate::http::{Events, INITIALIZE, Server, json};

fn hold(id: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"hold"{meta}}}}}"#
    )
}

fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_says_so() {
    let server = Server::start().await;
    let session = server.session().await;
    for meta in ["", r#","_meta":{"progressToken":1}"#] {
        let request = server
            .post(hold(r#""a""#, meta))
            .header("mcp-session-id", &session);
        let waiting = tokio::spawn(request.send());
        assert_eq!(server.bench.event().await, "started");
        let noted = server
            .post(cancel(r#""a""#))
            .header("mcp-session-id", &session);
        assert_eq!(noted.send().await.unwrap().status(), 202);
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
async fn a_session_cannot_cancel_another_s_call() {
    let server = Server::start().await;
    let (mine, theirs) = (server.session().await, server.session().await);
    let request = server.post(hold("1", "")).header("mcp-session-id", &mine);
    let waiting = tokio::spawn(request.send());
    assert_eq!(server.bench.event().await, "started");
    for request in [
        server.post(cancel("1")).header("mcp-session-id", &theirs),
        server.post(cancel("1")),
        server
            .post(cancel(r#""1""#))
            .header("mcp-session-id", &mine),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 202);
    }
    let other = server.post(hold("2", "")).header("mcp-session-id", &theirs);
    let other = tokio::spawn(other.send());
    assert_eq!(server.bench.event().await, "started", "and not: dropped");
    waiting.abort();
    other.abort();
}

#[tokio::test]
async fn deleting_a_session_drops_its_calls() {
    let server = Server::start().await;
    let session = server.session().await;
    let request = server
        .post(hold("1", ""))
        .header("mcp-session-id", &session);
    let waiting = tokio::spawn(request.send());
    assert_eq!(server.bench.event().await, "started");
    let delete = server
        .client
        .delete(&server.url)
        .header("mcp-session-id", &session);
    assert_eq!(delete.send().await.unwrap().status(), 204);
    assert_eq!(server.bench.event().await, "dropped");
    waiting.await.unwrap().unwrap();
    let gone = server
        .post(hold("1", ""))
        .header("mcp-session-id", &session);
    assert_eq!(gone.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_second_session_header_is_refused() {
    let server = Server::start().await;
    let sessions = [server.session().await, server.session().await];
    let [first, second] = &sessions;
    let request = server
        .post(hold("1", ""))
        .header("mcp-session-id", first)
        .header("mcp-session-id", second);
    assert_eq!(request.send().await.unwrap().status(), 400);
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
    answer.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
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

fn room_for_one() -> Router {
    let mut options = HttpOptions::default();
    options.max_sessions = 1;
    router(Bench::new(), options)
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten_and_a_used_one_is_not() {
    let router = room_for_one();
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
    let router = room_for_one();
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
    let opened = server
        .post(INITIALIZE)
        .header("x-user", "ada")
        .send()
        .await
        .unwrap();
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    for (user, status) in [(Some("ada"), 200), (Some("eve"), 404), (None, 404)] {
        let mut request = server.post(PING).header("mcp-session-id", &session);
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{user:?}");
    }
}
