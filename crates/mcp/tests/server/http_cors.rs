//! What browsers get: pages of allowed origins may use the endpoint, others may not.

use reqwest::{Method, RequestBuilder, Response};

use crate::http::{INITIALIZE, Server};

const APP: &str = "https://app.example";

async fn server(origins: &[&str]) -> Server {
    let origins = origins.iter().map(|origin| origin.parse().unwrap());
    Server::with(|options| options.allowed_origins = origins.collect()).await
}

fn preflight(server: &Server) -> RequestBuilder {
    let asked = "content-type,mcp-param-region,x-evil";
    server
        .request(Method::OPTIONS)
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
    let local = "http://localhost:5173";
    let headers = "accept, authorization, content-type, last-event-id, mcp-session-id, \
                   mcp-protocol-version, mcp-method, mcp-name, idempotency-key, traceparent, \
                   tracestate, baggage, mcp-param-region";
    for (server, origin) in [(&listed, APP), (&listed, local), (&any, APP)] {
        let answer = preflight(server).header("origin", origin).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 204);
        assert_eq!(header(&answer, "access-control-allow-origin"), origin);
        let methods = header(&answer, "access-control-allow-methods");
        assert_eq!(methods, "get, post, delete");
        assert_eq!(header(&answer, "access-control-allow-headers"), headers);
        assert!(header(&answer, "vary").contains("origin"));
        assert!(answer.headers().contains_key("access-control-max-age"));
    }
}

#[tokio::test]
async fn only_answers_to_an_allowed_origin_may_be_read_by_its_page() {
    let server = server(&[APP]).await;
    let session = server.session().await;
    let delete = server.request(Method::DELETE);
    let evil = "https://evil.example";
    for (status, origin, request) in [
        (200, APP, server.post(INITIALIZE)),
        (200, APP, server.listen(&session)),
        (204, APP, delete.header("mcp-session-id", &session)),
        (400, APP, server.post("{")),
        (403, evil, preflight(&server)),
        (403, evil, server.post(INITIALIZE)),
        (403, APP, preflight(&server).header("host", "evil.example")),
        (200, "", server.post(INITIALIZE)),
        (204, "", server.request(Method::OPTIONS)),
    ] {
        let request = match origin {
            "" => request,
            origin => request.header("origin", origin),
        };
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        if origin == APP && status != 403 {
            assert_eq!(header(&answer, "access-control-allow-origin"), APP);
            let exposed = header(&answer, "access-control-expose-headers");
            assert!(exposed.contains("mcp-session-id"), "{exposed}");
            assert!(header(&answer, "vary").contains("origin"));
        } else {
            let mut names = answer.headers().keys();
            assert!(!names.any(|name| name.as_str().starts_with("access-control")));
        }
    }
}
