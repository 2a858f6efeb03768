//! Lists and calls over HTTP, byte by byte.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use callward_core::{Caller, Principal};
use callward_mcp::server::{HttpEndpoint, HttpOptions, Identified, Identify, Refused, router};
use futures_util::future::Either;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, Version};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::backend::{Bench, ODD_RESULT, ODD_TOOL};
use crate::http::{INITIALIZE, META, Server, ask, call, json, request, seen, session_of};
use crate::http::{status, text};

#[tokio::test]
async fn ids_tools_and_results_come_back_byte_for_byte() {
    let server = Server::start().await;
    let raw = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.unwrap();
        answer.text().await.unwrap()
    };
    for id in r#"0 -1 1.50 18446744073709551616 "a" "\u0061/\"" """#.split(' ') {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD_RESULT}}}"#);
        assert_eq!(raw(server.post(call(id, "odd", ""))).await, expected);
    }
    // a modern result is complete, and otherwise untouched
    let expected = ODD_RESULT.replacen("{ ", r#"{"resultType":"complete", "#, 1);
    let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{expected}}}"#);
    let modern = server.modern("tools/call", r#""name":"odd""#);
    assert_eq!(raw(modern).await, expected);
    // what it says of tasks is nothing to legacy clients
    let without = ODD_TOOL.replace(r#""taskSupport":"optional""#, "");
    let legacy = server.post(request("tools/list", ""));
    let modern = server.modern("tools/list", "");
    for (list, tool) in [(legacy, &*without), (modern, ODD_TOOL)] {
        let answer = raw(list).await;
        assert!(answer.contains(tool), "{answer}");
    }
    let large = server.modern("tools/call", r#""name":"large""#);
    let large = large.send().await.unwrap();
    assert!(large.content_length().is_some_and(|bytes| bytes > 200_000));
    assert_eq!(json(large).await["result"]["resultType"], "complete");
    let failed = raw(server.post(call("1", "upstream", ""))).await;
    assert!(failed.contains(r#""data":{"free": 0.0}"#), "{failed}");
}

#[tokio::test]
async fn initialize_negotiates_and_discovery_declares_every_list() {
    let server = Server::start().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let request = server.post(INITIALIZE.replace("2025-06-18", asked));
        let answer = request.send().await.unwrap();
        assert!(answer.headers().contains_key("mcp-session-id"));
        let expected = json!({
            "protocolVersion": answered,
            "serverInfo": {"name": "bench", "version": "0.0.1"},
            "capabilities": {"tools": {"listChanged": true}},
            "instructions": "call echo",
        });
        assert_eq!(json(answer).await["result"], expected);
    }
    let discovered = ask(server.modern("server/discover", "")).await["result"].take();
    let all = json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}});
    assert_eq!(discovered["capabilities"], all);
    assert_eq!(discovered["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(discovered["instructions"], "call echo");
}

#[tokio::test]
async fn lists_follow_their_generation_and_those_not_relayed_are_empty() {
    let server = Server::start().await;
    for name in ["echo", "fresh"] {
        let list = ask(server.post(request("tools/list", ""))).await;
        assert_eq!(list["result"]["tools"][0]["name"], name);
        server.bench.change(&["fresh"]);
    }
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let result = ask(server.modern(method, "")).await["result"].take();
        assert_eq!(result["resultType"], "complete");
        if member != "tools" {
            assert_eq!(result[member], json!([]));
            let legacy = ask(server.post(request(method, ""))).await;
            assert_eq!(legacy["result"], json!({ member: [] }));
        }
    }
}

#[tokio::test]
async fn arguments_and_answers_reach_the_tool_as_they_were_written() {
    let server = Server::start().await;
    let odd = r#"{ "n" : 1e2,"n2":12345678901234567890 }"#;
    for (more, expected) in [
        (&*format!(r#","arguments":{odd}"#), odd),
        ("", "{}"),
        (r#","arguments":null"#, "{}"),
    ] {
        assert_eq!(text(server.post(call("1", "echo", more))).await, expected);
    }
    let asked = ask(server.modern("tools/call", r#""name":"asks""#)).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let answers = r#""name":"seen","inputResponses":{"a":{}},"requestState":"s1""#;
    let seen = seen(server.modern("tools/call", answers)).await;
    assert_eq!(seen["answers"], r#"{"a":{}}"#);
    assert_eq!(seen["state"], r#""s1""#);
}

#[tokio::test]
async fn what_a_modern_client_can_do_reaches_the_backend() {
    let server = Server::start().await;
    let capable = r#""name":"capable""#;
    let lacking = server.modern("tools/call", capable).send().await.unwrap();
    assert_eq!(lacking.status(), 400);
    assert_eq!(json(lacking).await["error"]["code"], -32021);
    let meta = META.replace("Capabilities\":{}", "Capabilities\":{\"sampling\":{}}");
    let able = server.modern_as("tools/call", capable, &meta);
    assert_eq!(text(able).await, "capable");
    let legacy = server.post(call("1", "capable", ""));
    assert_eq!(status(legacy).await, 200, "a matter of JSON-RPC");
}

/// Takes a header's word for who sends a request.
struct ByHeader;

impl Identify for ByHeader {
    fn identify(&self, request: &Parts) -> Identified {
        let user = request
            .headers
            .get("x-user")
            .map(|user| user.to_str().unwrap());
        Either::Right(Box::pin(ready(match user {
            Some("mallory") => {
                let mut refused = Refused::new(StatusCode::UNAUTHORIZED, "not you");
                refused.challenge = Some(HeaderValue::from_static("Bearer"));
                Err(refused)
            }
            Some("unchecked") => {
                let text = "the issuer does not answer";
                let mut refused = Refused::new(StatusCode::SERVICE_UNAVAILABLE, text);
                refused.retry_after = Some(Duration::from_millis(1_500));
                Err(refused)
            }
            user => Ok(Arc::new(Caller::new(Principal::new(
                user.unwrap_or("unnamed"),
            )))),
        })))
    }

    fn step_up(&self, _: &Parts, scopes: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("Bearer scope=\"{scopes}\"")).ok()
    }
}

/// Some clients lose an answer that comes before the end of a request.
#[tokio::test]
async fn a_refusal_over_http_2_reads_a_small_body_first() {
    for (version, reads) in [(Version::HTTP_11, false), (Version::HTTP_2, true)] {
        let endpoint = HttpEndpoint::new(Bench::new(), Arc::new(ByHeader), HttpOptions::default());
        let read = Arc::new(AtomicBool::new(false));
        let seen = read.clone();
        let part = async move {
            seen.store(true, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(b"{}"))
        };
        let request = Request::post("http://localhost/mcp").version(version);
        let request = request
            .header("host", "localhost")
            .header("x-user", "mallory");
        let body = Body::from_stream(futures_util::stream::once(part));
        let answer = endpoint.serve(request.body(body).unwrap()).await;
        assert_eq!(answer.status(), 401);
        assert_eq!(read.load(Ordering::Relaxed), reads, "{version:?}");
    }
}

/// Knows every sender until it refuses all.
#[derive(Default)]
struct Revocable(AtomicBool);

impl Identify for Revocable {
    fn identify(&self, _: &Parts) -> Identified {
        Either::Left(ready(match self.0.load(Ordering::Relaxed) {
            true => Err(Refused::new(StatusCode::UNAUTHORIZED, "revoked")),
            false => Ok(Arc::new(Caller::new(Principal::new("ada")))),
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_soon_after_its_credential() {
    let identify = Arc::new(Revocable::default());
    let endpoint = HttpEndpoint::new(Bench::new(), identify.clone(), HttpOptions::default());
    let wanted = format!(r#""notifications":{{"toolsListChanged":true}},{META}"#);
    let listen = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(Body::from(request("subscriptions/listen", &wanted)));
    let answer = endpoint.clone().serve(listen.unwrap()).await;
    assert_eq!(answer.status(), 200);
    let began = Instant::now();
    let whole = axum::body::to_bytes(answer.into_body(), usize::MAX);
    let revoked = async {
        sleep(Duration::from_secs(25)).await;
        identify.0.store(true, Ordering::Relaxed);
    };
    tokio::join!(whole, revoked).0.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test]
async fn the_caller_is_the_one_identified_and_so_is_its_session() {
    let bench = Bench::new();
    let router = router(
        Arc::clone(&bench),
        Arc::new(ByHeader),
        HttpOptions::default(),
    );
    let server = Server::serving(bench, router).await;
    let whoami = || server.post(call("1", "seen", ""));
    let stateless = seen(whoami()).await;
    assert_eq!(stateless["principal"], "unnamed");
    assert_eq!(stateless["session"], json!(null));
    let opened = server.post(INITIALIZE).header("x-user", "ada").send().await;
    let session = session_of(opened.unwrap().headers());
    let in_session = || whoami().header("mcp-session-id", &session);
    let caller = seen(in_session().header("x-user", "ada")).await;
    assert_eq!(caller["principal"], "ada");
    assert_eq!(caller["session"], session);
    assert_eq!(caller["client"], "raw 0");
    // to others it is of no use
    for other in [in_session().header("x-user", "eve"), in_session()] {
        assert_eq!(status(other).await, 404);
    }
    let refused = whoami().header("x-user", "mallory").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let refused = whoami().header("x-user", "unchecked").send().await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "2");
    let error = json(refused).await["error"].take();
    assert_eq!(
        (&error["code"], &error["data"]["retryAfterMs"]),
        (&json!(-33010), &json!(1_500))
    );
    // a call that needs more scopes says which, in both eras, to one that asked for progress too
    let name = r#""name":"scoped""#;
    let asks = META.replacen('{', r#"{"progressToken":"up","#, 1);
    for lacking in [
        server.post(call("1", "scoped", "")),
        server.modern("tools/call", name),
        server.modern_as("tools/call", name, &asks),
    ] {
        let lacking = lacking.send().await.unwrap();
        assert_eq!(lacking.status(), 403);
        let challenge = &lacking.headers()["www-authenticate"];
        assert_eq!(challenge, "Bearer scope=\"tools:write tools:destroy\"");
        let error = json(lacking).await["error"].clone();
        assert_eq!(error["data"]["kind"], "insufficient_scope");
        assert_eq!(
            error["data"]["scopes"],
            json!(["tools:write", "tools:destroy"])
        );
    }
}

#[tokio::test]
async fn a_principal_over_its_limit_gets_429_and_the_time_to_wait() {
    let bench = Bench::new();
    let by_header = Arc::new(ByHeader);
    let router = router(Arc::clone(&bench), by_header, HttpOptions::default());
    let server = Server::serving(bench, router).await;
    let name = r#""name":"exceeds""#;
    let asks = META.replacen('{', r#"{"progressToken":"up","#, 1);
    for limited in [
        server.post(call("1", "exceeds", "")),
        server.modern("tools/call", name),
        server.modern_as("tools/call", name, &asks),
        server.post(INITIALIZE).header("x-user", "eve"),
        server
            .post(request("tools/list", ""))
            .header("x-user", "eve"),
        server
            .post(request("prompts/list", ""))
            .header("x-user", "eve"),
        server.modern("tools/list", "").header("x-user", "eve"),
        server.modern("server/discover", "").header("x-user", "eve"),
    ] {
        let limited = limited.send().await.unwrap();
        assert_eq!(limited.status(), 429);
        assert_eq!(limited.headers()["retry-after"], "2");
        let error = json(limited).await["error"].take();
        assert_eq!(error["code"], -33010);
        assert_eq!(error["data"]["retryAfterMs"], 1001);
        let limit = json!({"name": "calls_per_minute", "max": 9, "resetMs": 60_000});
        assert_eq!(error["data"]["principalLimit"], limit);
    }
    // a server's own limit does not change the status, and a ping does not count as a list
    for other in [
        server.post(call("1", "limited", "")),
        server.modern("tools/call", r#""name":"limited""#),
        server.post(request("ping", "")).header("x-user", "eve"),
    ] {
        assert_eq!(status(other).await, 200);
    }
}

#[tokio::test]
async fn mirrored_headers_must_agree_with_the_body() {
    let server = Server::start().await;
    for (arguments, region, status) in [
        (r#"{"region":"eu"}"#, Some("eu"), 200),
        (r#"{"region":"ü"}"#, Some("=?base64?w7w=?="), 200),
        ("{}", None, 200),
        (r#"{"region":"eu"}"#, Some("us"), 400),
        (r#"{"region":"eu"}"#, None, 400),
        (r#"{"region":null}"#, Some("eu"), 400),
    ] {
        let params = format!(r#""name":"mirror","arguments":{arguments}"#);
        let mut request = server.modern("tools/call", &params);
        if let Some(region) = region {
            request = request.header("mcp-param-region", region);
        }
        let answer = request.send().await.unwrap();
        // the tool is unknown, but the headers were understood
        assert_eq!(answer.status(), status, "{arguments} {region:?}");
        let code = if status == 400 { -32020 } else { -32602 };
        assert_eq!(json(answer).await["error"]["code"], code);
    }
    for (name, code) in [("=?base64?w7w=?=", -32602), ("=?base64?!?=", -32020)] {
        let request = server
            .post(call("1", "ü", &format!(",{META}")))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name);
        assert_eq!(ask(request).await["error"]["code"], code);
    }
}

#[tokio::test]
async fn a_call_has_the_idempotency_key_of_its_client_or_is_refused() {
    let server = Server::start().await;
    for (meta, header, expected) in [
        ("", None, Ok(json!(null))),
        (r#""order-1""#, None, Ok(json!("order-1"))),
        ("", Some("order-1"), Ok(json!("order-1"))),
        ("", Some(r#""order-1""#), Ok(json!("order-1"))),
        (r#""order\u002d1""#, Some("order-1"), Ok(json!("order-1"))),
        ("7", None, Err("string")),
        (r#""""#, None, Err("empty")),
        ("", Some(""), Err("empty")),
        ("", Some("a b"), Err("visible ASCII")),
        (r#""a""#, Some("b"), Err("the body says")),
    ] {
        let key = match meta {
            "" => String::new(),
            key => format!(r#""io.callward/idempotencyKey":{key},"#),
        };
        let modern = META.replacen('{', &format!("{{{key}"), 1);
        let legacy = format!(r#","_meta":{{{key}"x":1}}"#);
        for mut request in [
            server.modern_as("tools/call", r#""name":"seen""#, &modern),
            server.post(call("1", "seen", &legacy)),
        ] {
            if let Some(header) = header {
                request = request.header("idempotency-key", header);
            }
            match &expected {
                Ok(key) => assert_eq!(seen(request).await["key"], *key, "{meta} {header:?}"),
                Err(word) => {
                    let error = ask(request).await["error"].take();
                    assert_eq!(error["code"], -32602, "{meta} {header:?}: {error}");
                    assert!(error["message"].as_str().unwrap().contains(word), "{error}");
                }
            }
        }
    }
}
