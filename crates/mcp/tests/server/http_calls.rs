//! Lists and calls over HTTP, byte by byte.

use std::sync::Arc;

use axum::Extension;
use callward_core::{Caller, Principal};
use callward_mcp::server::{HttpOptions, router};
use serde_json::json;

use crate::backend::{Bench, ODD_RESULT, ODD_TOOL};
use crate::http::{INITIALIZE, META, Server, ask, call, json, said, status};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn ids_tools_and_results_come_back_byte_for_byte() {
    let server = Server::start().await;
    let text = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.unwrap();
        answer.text().await.unwrap()
    };
    for id in [
        "0",
        "-1",
        "1.50",
        "18446744073709551616",
        r#""a""#,
        r#""\u0061/\"""#,
        r#""""#,
    ] {
        assert_eq!(
            text(server.post(call(id, "odd", ""))).await,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD_RESULT}}}"#)
        );
    }
    // a modern result is complete, and otherwise untouched
    let expected = ODD_RESULT.replacen("{ ", r#"{"resultType":"complete", "#, 1);
    assert_eq!(
        text(server.modern("tools/call", r#""name":"odd""#)).await,
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{expected}}}"#)
    );
    for request in [server.post(LIST), server.modern("tools/list", "")] {
        let answer = text(request).await;
        assert!(answer.contains(ODD_TOOL), "{answer}");
    }
    let large = ask(server.modern("tools/call", r#""name":"large""#)).await;
    let result = &large["result"];
    let length = result["content"][0]["text"].as_str().map(str::len);
    assert_eq!(length, Some(200_000));
    assert_eq!(result["resultType"], "complete");
}

#[tokio::test]
async fn a_modern_list_states_how_long_and_for_whom_it_is_good() {
    let server = Server::start().await;
    let list = ask(server.modern("tools/list", "")).await["result"].take();
    assert_eq!(list["resultType"], "complete");
    assert_eq!(list["ttlMs"], 0);
    assert_eq!(list["cacheScope"], "private");
    let name = &list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(name, "bench");
    let discovered = ask(server.modern("server/discover", "")).await["result"].take();
    assert_eq!(
        discovered["capabilities"],
        json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}})
    );
    assert_eq!(discovered["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(discovered["instructions"], "call echo");
}

#[tokio::test]
async fn a_list_follows_its_generation() {
    let server = Server::start().await;
    for name in ["echo", "fresh"] {
        let list = ask(server.post(LIST)).await;
        assert_eq!(list["result"]["tools"][0]["name"], name);
        server.bench.change(&["fresh"]);
    }
}

#[tokio::test]
async fn initialize_negotiates_the_revision() {
    let server = Server::start().await;
    for (asked, answered) in [("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25")] {
        let request = server.post(INITIALIZE.replace("2025-06-18", asked));
        let answer = request.send().await.unwrap();
        assert!(answer.headers().contains_key("mcp-session-id"));
        let result = json(answer).await["result"].take();
        assert_eq!(result["protocolVersion"], answered);
        assert_eq!(result["serverInfo"]["name"], "bench");
        let capabilities = json!({"tools": {"listChanged": true}});
        assert_eq!(result["capabilities"], capabilities);
    }
}

#[tokio::test]
async fn arguments_reach_the_tool_as_they_were_written() {
    let server = Server::start().await;
    let odd = r#"{ "n" : 1e2,"n2":12345678901234567890 }"#;
    for (more, seen) in [
        (&*format!(r#","arguments":{odd}"#), odd),
        ("", "{}"),
        (r#","arguments":null"#, "{}"),
    ] {
        assert_eq!(said(server.post(call("1", "echo", more))).await, seen);
    }
}

#[tokio::test]
async fn the_data_of_our_own_errors_says_how_far_the_call_got() {
    let server = Server::start().await;
    let answer = ask(server.post(call("1", "limited", ""))).await;
    assert_eq!(
        answer["error"]["data"],
        json!({"kind": "rate_limited", "delivery": "answered", "server": "shop",
            "retryAfterMs": 250, "attempts": 3})
    );
    let answer = server.post(call("1", "upstream", "")).send().await.unwrap();
    let answer = answer.text().await.unwrap();
    assert!(answer.contains(r#""data":{"free": 0.0}"#), "{answer}");
}

#[tokio::test]
async fn a_modern_client_is_asked_and_its_answers_reach_the_backend() {
    let server = Server::start().await;
    let asked = ask(server.modern("tools/call", r#""name":"asks""#)).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let answers = r#""name":"answers","inputResponses":{"a":{}},"requestState":"s1""#;
    let seen = said(server.modern("tools/call", answers)).await;
    assert!(
        seen.contains(r#"{\"a\":{}}"#) && seen.contains("s1"),
        "{seen}"
    );
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
    assert_eq!(said(able).await, "capable");
    let legacy = server.post(call("1", "capable", ""));
    assert_eq!(status(legacy).await, 200, "a matter of JSON-RPC");
}

#[tokio::test]
async fn the_caller_is_who_the_outer_layer_says_or_anonymous() {
    let bench = Bench::new();
    let ada = Arc::new(Caller::new(Principal::new("ada")));
    let router = router(Arc::clone(&bench), HttpOptions::default()).layer(Extension(ada));
    for (server, principal) in [
        (Server::start().await, "anonymous"),
        (Server::serving(bench, router).await, "ada"),
    ] {
        let whoami = || server.post(call("1", "whoami", ""));
        assert_eq!(said(whoami()).await, format!("{principal} false"));
        let request = whoami().header("mcp-session-id", server.session().await);
        assert_eq!(said(request).await, format!("{principal} true"));
    }
}

#[tokio::test]
async fn trace_context_is_taken_from_the_metadata_and_else_from_http() {
    let server = Server::start().await;
    let of = |span: u8| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{span}-01");
    let meta = format!(r#""traceparent":"{}","tracestate":"a=b""#, of(1));
    for (meta, seen) in [
        (&*meta, format!("{} a=b, beside {}", of(1), of(2))),
        ("", of(2)),
        (r#""traceparent":"00-1-2-01""#, of(2)),
    ] {
        let request = server.post(call("1", "trace", &format!(r#","_meta":{{{meta}}}"#)));
        assert_eq!(said(request.header("traceparent", of(2))).await, seen);
    }
}

#[tokio::test]
async fn mirrored_arguments_must_say_what_the_arguments_say() {
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
        assert_eq!(answer.status(), status, "{arguments} {region:?}");
        if status == 400 {
            assert_eq!(json(answer).await["error"]["code"], -32020);
        }
    }
}

#[tokio::test]
async fn a_name_beyond_ascii_travels_encoded() {
    let server = Server::start().await;
    let request = |name: &'static str| {
        server
            .post(call("1", "ü", &format!(",{META}")))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name)
    };
    let error = ask(request("=?base64?w7w=?=")).await["error"].take();
    assert_eq!(
        error["code"], -32602,
        "it is unknown, but it was understood"
    );
    assert!(error["message"].as_str().unwrap().contains('ü'));
    assert_eq!(status(request("=?base64?!?=")).await, 400);
}

#[tokio::test]
async fn lists_of_what_is_not_relayed_are_empty_in_both_eras() {
    let server = Server::start().await;
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let legacy = server.post(LIST.replace("tools/list", method));
        assert_eq!(ask(legacy).await["result"], json!({ member: [] }));
        let result = ask(server.modern(method, "")).await["result"].take();
        assert_eq!(result[member], json!([]), "{result}");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["ttlMs"], 0);
        assert_eq!(result["cacheScope"], "private");
    }
}

#[tokio::test]
async fn a_call_knows_how_its_client_introduced_itself() {
    let server = Server::start().await;
    let legacy = server
        .post(call("1", "client", ""))
        .header("mcp-session-id", server.session().await);
    let own = META.replace(
        r#""_meta":{"#,
        r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cat","version":"2"},"#,
    );
    let modern = server.modern_as("tools/call", r#""name":"client""#, &own);
    for (request, client) in [(legacy, "raw 0"), (modern, "cat 2")] {
        assert_eq!(said(request).await, client);
    }
}
