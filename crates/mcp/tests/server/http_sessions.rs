//! Sessions: cancelling in them, ending them, forgetting them.

use std::time::Duration;

use axum::body::Body;
use callward_mcp::server::{HttpOptions, router};
use http::Method;
use tower::ServiceExt;

use crate::backend::Bench;
use crate::http::{INITIALIZE, PING, Server, call, cancel, json, session_of, status};

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_answered_so() {
    let server = Server::start().await;
    let session = server.session().await;
    for meta in ["", r#","_meta":{"progressToken":1}"#] {
        let request = server.post(call(r#""a""#, "hold", meta));
        let request = request.header("mcp-session-id", &session);
        let waiting = tokio::spawn(async move { json(request.send().await.unwrap()).await });
        assert_eq!(server.bench.event().await, "started");
        let noted = server.post(cancel(r#""a""#));
        assert_eq!(status(noted.header("mcp-session-id", &session)).await, 202);
        assert_eq!(server.bench.event().await, "dropped");
        let answer = waiting.await.unwrap();
        assert_eq!(answer["id"], "a");
        assert_eq!(answer["error"]["data"]["kind"], "cancelled");
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
    other.abort();
    assert_eq!(server.bench.event().await, "dropped");
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
    let router = router(Bench::new(), options);
    // to the router itself, without a socket: time can be paused
    let send = async |method: Method, session: &str, body: &str| {
        let request = http::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let request = match session {
            "" => request,
            session => request.header("mcp-session-id", session),
        };
        let request = request.body(Body::from(body.to_owned())).unwrap();
        router.clone().oneshot(request).await.unwrap()
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
    tokio::time::advance(MINUTE / 2).await;
    assert_eq!(initialize().await, 503);
    tokio::time::advance(MINUTE * 30).await;
    assert_eq!(ping(PING).await, 404);
    assert_eq!(initialize().await, 200);
}
