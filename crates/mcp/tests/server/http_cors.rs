//! What browsers get: pages of allowed origins may use the endpoint, others may not.

use callward_mcp::server::HttpOptions;
use reqwest::Method;

use crate::http::{INITIALIZE, Server, json};

const APP: &str = "https://app.example";

async fn server() -> Server {
    let origins = [APP.parse().unwrap(), "http://localhost:*".parse().unwrap()];
    let mut options = HttpOptions::default();
    options.allowed_origins = origins.into();
    Server::with(options).await
}

fn preflight(server: &Server, origin: &str) -> reqwest::RequestBuilder {
    server
        .client
        .request(Method::OPTIONS, &server.url)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "content-type,mcp-param-region,x-evil",
        )
}

fn header(answer: &reqwest::Response, name: &str) -> String {
    answer.headers()[name].to_str().unwrap().to_lowercase()
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_names_methods_and_headers() {
    let server = server().await;
    for origin in [APP, "http://localhost:5173"] {
        let answer = preflight(&server, origin).send().await.unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(header(&answer, "access-control-allow-origin"), origin);
        assert_eq!(
            header(&answer, "access-control-allow-methods"),
            "get, post, delete"
        );
        let allowed = header(&answer, "access-control-allow-headers");
        let allowed: Vec<_> = allowed.split(", ").collect();
        for name in [
            "accept",
            "authorization",
            "content-type",
            "idempotency-key",
            "last-event-id",
            "mcp-method",
            "mcp-name",
            "mcp-param-region",
            "mcp-protocol-version",
            "mcp-session-id",
        ] {
            assert!(allowed.contains(&name), "{name} in {allowed:?}");
        }
        assert!(!allowed.contains(&"x-evil"), "{allowed:?}");
        assert!(header(&answer, "vary").contains("origin"));
        assert!(answer.headers().contains_key("access-control-max-age"));
    }
}

#[tokio::test]
async fn every_answer_to_an_allowed_origin_may_be_read_by_its_page() {
    let server = server().await;
    let opened = server.post(INITIALIZE).header("origin", APP).send();
    let opened = opened.await.unwrap();
    assert_eq!(opened.status(), 200);
    let session = header(&opened, "mcp-session-id");
    let in_session = |method| {
        let request = server.client.request(method, &server.url);
        request
            .header("mcp-session-id", &session)
            .header("accept", "text/event-stream")
            .header("origin", APP)
    };
    let listening = in_session(Method::GET).send().await.unwrap();
    assert_eq!(listening.status(), 200);
    let ended = in_session(Method::DELETE).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    let refused = server.post("{").header("origin", APP).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    for answer in [opened, listening, ended, refused] {
        assert_eq!(header(&answer, "access-control-allow-origin"), APP);
        let exposed = header(&answer, "access-control-expose-headers");
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        assert!(header(&answer, "vary").contains("origin"));
    }
}

#[tokio::test]
async fn other_origins_and_requests_without_one_get_no_such_header() {
    let server = server().await;
    let foreign = "https://evil.example";
    let answers = [
        (403, preflight(&server, foreign)),
        (403, server.post(INITIALIZE).header("origin", foreign)),
        (403, preflight(&server, APP).header("host", "evil.example")),
        (200, server.post(INITIALIZE)),
        (204, server.client.request(Method::OPTIONS, &server.url)),
    ];
    for (status, request) in answers {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        for name in answer.headers().keys() {
            assert!(!name.as_str().starts_with("access-control"), "{name}");
        }
    }
}

#[tokio::test]
async fn any_origin_is_answered_by_its_name_and_never_by_a_star() {
    let mut options = HttpOptions::default();
    options.allowed_origins = vec!["*".parse().unwrap()];
    let server = Server::with(options).await;
    let answer = preflight(&server, APP).send().await.unwrap();
    assert_eq!(header(&answer, "access-control-allow-origin"), APP);
}

#[tokio::test]
async fn a_refused_host_is_named_with_the_key_to_change() {
    let server = server().await;
    let request = server.post(INITIALIZE).header("host", "gate.example:8443");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 403);
    let message = json(answer).await["error"]["message"].to_string();
    assert!(message.contains("gate.example:8443"), "{message}");
    assert!(message.contains("http.allowed_hosts"), "{message}");
}
