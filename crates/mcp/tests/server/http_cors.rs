//! What browsers get: pages of allowed origins may use the endpoint, others may not.

use reqwest::{Method, RequestBuilder, Response};

use crate::http::{INITIALIZE, Server};

const APP: &str = "https://app.example";

async fn server(origins: &[&str]) -> Server {
    let origins = origins.iter().map(|origin| origin.parse().unwrap());
    Server::with(|options| options.allowed_origins = origins.collect()).await
}

fn preflight(server: &Server, origin: &str) -> RequestBuilder {
    let asked = "content-type,mcp-param-region,x-evil";
    server
        .request(Method::OPTIONS)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", asked)
}

fn header(answer: &Response, name: &str) -> String {
    answer.headers()[name].to_str().unwrap().to_lowercase()
}

#[tokio::test]
async fn a_preflight_of_an_allowed_origin_names_methods_and_headers() {
    let listed = server(&[APP, "http://localhost:*"]).await;
    // any origin is answered by its name and never by a star
    let any = server(&["*"]).await;
    for (server, origin) in [
        (&listed, APP),
        (&listed, "http://localhost:5173"),
        (&any, APP),
    ] {
        let answer = preflight(server, origin).send().await.unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(header(&answer, "access-control-allow-origin"), origin);
        let methods = header(&answer, "access-control-allow-methods");
        assert_eq!(methods, "get, post, delete");
        let allowed = header(&answer, "access-control-allow-headers");
        let allowed: Vec<_> = allowed.split(", ").collect();
        let names = "accept authorization content-type idempotency-key last-event-id mcp-method \
                     mcp-name mcp-param-region mcp-protocol-version mcp-session-id";
        for name in names.split(' ') {
            assert!(allowed.contains(&name), "{name} in {allowed:?}");
        }
        assert!(!allowed.contains(&"x-evil"), "{allowed:?}");
        assert!(header(&answer, "vary").contains("origin"));
        assert!(answer.headers().contains_key("access-control-max-age"));
    }
}

#[tokio::test]
async fn every_answer_to_an_allowed_origin_may_be_read_by_its_page() {
    let server = server(&[APP]).await;
    let session = server.session().await;
    let delete = server.request(Method::DELETE);
    for (status, request) in [
        (200, server.post(INITIALIZE)),
        (200, server.listen(&session)),
        (204, delete.header("mcp-session-id", &session)),
        (400, server.post("{")),
    ] {
        let answer = request.header("origin", APP).send().await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(header(&answer, "access-control-allow-origin"), APP);
        let exposed = header(&answer, "access-control-expose-headers");
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        assert!(header(&answer, "vary").contains("origin"));
    }
}

#[tokio::test]
async fn other_origins_and_requests_without_one_get_no_such_header() {
    let server = server(&[APP]).await;
    let foreign = "https://evil.example";
    for (status, request) in [
        (403, preflight(&server, foreign)),
        (403, server.post(INITIALIZE).header("origin", foreign)),
        (403, preflight(&server, APP).header("host", "evil.example")),
        (200, server.post(INITIALIZE)),
        (204, server.request(Method::OPTIONS)),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        for name in answer.headers().keys() {
            assert!(!name.as_str().starts_with("access-control"), "{name}");
        }
    }
}
