//! Sessions: cancelling in them, ending them, forgetting them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use tower::ServiceExt;

use tollgate_mcp::face::{HttpOptions, router};

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

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_forgotten_and_a_used_one_is_not() {
    let minute = Duration::from_secs(60);
    let options = HttpOptions::default().with_sessions(1, minute * 30);
    let router = router(Bench::new(), options);
    let post = async |session: Option<&str>, body: &str| {
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        router.clone().oneshot(request).await.unwrap()
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let opened = post(None, INITIALIZE).await;
    let session = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();

    tokio::time::advance(minute * 29).await;
    assert_eq!(post(Some(&session), ping).await.status(), StatusCode::OK);
    tokio::time::advance(minute * 29).await;
    let full = post(None, INITIALIZE).await;
    assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::advance(minute).await;
    assert_eq!(
        post(Some(&session), ping).await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(post(None, INITIALIZE).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_session_is_no_use_to_another_principal() {
    use axum::extract::Request;
    use axum::middleware::{Next, from_fn};
    use tollgate_core::Principal;

    async fn by_header(mut request: Request, next: Next) -> axum::response::Response {
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
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (user, status) in [(Some("ada"), 200), (Some("eve"), 404), (None, 404)] {
        let mut request = server.post(ping).header("mcp-session-id", &session);
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{user:?}");
    }
}
