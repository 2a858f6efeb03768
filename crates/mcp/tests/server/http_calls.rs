//! Lists and calls over HTTP, byte by byte.

use std::sync::Arc;

use axum::Extension;
use callward_core::{Caller, Principal};
use callward_mcp::server::{HttpOptions, router};
use serde_json::json;

use crate::backend::{Bench, ODD_RESULT, ODD_TOOL};
use crate::http::{INITIALIZE, META, Server, json};

fn call(id: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#)
}

#[tokio::test]
async fn an_id_comes_back_exactly_as_it_was_sent() {
    let server = Server::start().await;
    for id in [
        "0",
        "-1",
        "1.50",
        "18446744073709551616",
        r#""a""#,
        r#""\u0061/\"""#,
        r#""""#,
    ] {
        let answer = server
            .post(call(id, r#""name":"odd""#))
            .send()
            .await
            .unwrap();
        assert_eq!(
            answer.text().await.unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD_RESULT}}}"#)
        );
    }
}

#[tokio::test]
async fn a_tool_s_unknown_members_and_explicit_false_survive_in_both_eras() {
    let server = Server::start().await;
    let legacy = server.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let modern = server.modern("tools/list", "");
    for request in [legacy, modern] {
        let answer = request.send().await.unwrap().text().await.unwrap();
        assert!(answer.contains(ODD_TOOL), "{answer}");
    }
}

#[tokio::test]
async fn a_modern_result_is_complete_and_otherwise_untouched() {
    let server = Server::start().await;
    let answer = server
        .modern("tools/call", r#""name":"odd""#)
        .send()
        .await
        .unwrap();
    let expected = ODD_RESULT.replacen("{ ", r#"{"resultType":"complete", "#, 1);
    assert_eq!(
        answer.text().await.unwrap(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{expected}}}"#)
    );
}

#[tokio::test]
async fn a_modern_list_states_how_long_and_for_whom_it_is_good() {
    let server = Server::start().await;
    let list = json(server.modern("tools/list", "").send().await.unwrap()).await;
    let list = &list["result"];
    assert_eq!(list["resultType"], "complete");
    assert_eq!(list["ttlMs"], 0);
    assert_eq!(list["cacheScope"], "private");
    assert_eq!(
        list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "bench"
    );
    let discovered = json(server.modern("server/discover", "").send().await.unwrap()).await;
    let discovered = &discovered["result"];
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
    let names = async || {
        let list = server.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let list = json(list.send().await.unwrap()).await;
        list["result"]["tools"][0]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(names().await, "echo");
    server.bench.change(&["fresh"]);
    assert_eq!(names().await, "fresh");
}

#[tokio::test]
async fn initialize_negotiates_the_revision() {
    let server = Server::start().await;
    for (asked, answered) in [("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25")] {
        let answer = server
            .post(INITIALIZE.replace("2025-06-18", asked))
            .send()
            .await
            .unwrap();
        assert!(answer.headers().contains_key("mcp-session-id"));
        let answer = json(answer).await;
        assert_eq!(answer["result"]["protocolVersion"], answered);
        assert_eq!(answer["result"]["serverInfo"]["name"], "bench");
        assert_eq!(
            answer["result"]["capabilities"],
            json!({"tools": {"listChanged": true}})
        );
    }
}

#[tokio::test]
async fn arguments_reach_the_tool_as_they_were_written() {
    let server = Server::start().await;
    for (params, seen) in [
        (
            r#""name":"echo","arguments":{ "n" : 1e2,"n2":12345678901234567890 }"#,
            r#"{ "n" : 1e2,"n2":12345678901234567890 }"#,
        ),
        (r#""name":"echo""#, "{}"),
        (r#""name":"echo","arguments":null"#, "{}"),
    ] {
        let answer = json(server.post(call("1", params)).send().await.unwrap()).await;
        assert_eq!(answer["result"]["content"][0]["text"], seen);
    }
}

#[tokio::test]
async fn a_large_result_arrives_whole() {
    let server = Server::start().await;
    let answer = json(
        server
            .modern("tools/call", r#""name":"large""#)
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        200_000
    );
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn the_data_of_our_own_errors_says_how_far_the_call_got() {
    let server = Server::start().await;
    let answer = server
        .post(call("1", r#""name":"limited""#))
        .send()
        .await
        .unwrap();
    assert_eq!(
        json(answer).await["error"]["data"],
        json!({"kind": "rate_limited", "delivery": "answered", "server": "shop",
            "retryAfterMs": 250, "attempts": 3})
    );
    let answer = server
        .post(call("1", r#""name":"upstream""#))
        .send()
        .await
        .unwrap();
    let answer = answer.text().await.unwrap();
    assert!(answer.contains(r#""data":{"free": 0.0}"#), "{answer}");
}

#[tokio::test]
async fn a_modern_client_is_asked_and_its_answers_reach_the_backend() {
    let server = Server::start().await;
    let asked = json(
        server
            .modern("tools/call", r#""name":"asks""#)
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let answers = r#""name":"answers","inputResponses":{"a":{}},"requestState":"s1""#;
    let seen = json(server.modern("tools/call", answers).send().await.unwrap()).await;
    let seen = seen["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        seen.contains(r#"{\"a\":{}}"#) && seen.contains("s1"),
        "{seen}"
    );
}

#[tokio::test]
async fn what_a_modern_client_can_do_reaches_the_backend() {
    let server = Server::start().await;
    let lacking = server
        .modern("tools/call", r#""name":"capable""#)
        .send()
        .await
        .unwrap();
    assert_eq!(lacking.status(), 400);
    assert_eq!(json(lacking).await["error"]["code"], -32021);
    let meta = META.replace("Capabilities\":{}", "Capabilities\":{\"sampling\":{}}");
    let able = server
        .post(call("1", &format!(r#""name":"capable",{meta}"#)))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "capable");
    let able = json(able.send().await.unwrap()).await;
    assert_eq!(able["result"]["content"][0]["text"], "capable");
    let legacy = server
        .post(call("1", r#""name":"capable""#))
        .send()
        .await
        .unwrap();
    assert_eq!(
        legacy.status(),
        200,
        "a legacy error is a matter of JSON-RPC"
    );
}

#[tokio::test]
async fn the_caller_is_who_the_outer_layer_says_or_anonymous() {
    let server = Server::start().await;
    let whoami = call("1", r#""name":"whoami""#);
    let said = async |request: reqwest::RequestBuilder| {
        let answer = json(request.send().await.unwrap()).await;
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(said(server.post(whoami.clone())).await, "anonymous false");
    let session = server.session().await;
    let request = server
        .post(whoami.clone())
        .header("mcp-session-id", &session);
    assert_eq!(said(request).await, "anonymous true");

    let bench = Bench::new();
    let ada = Arc::new(Caller::new(Principal::new("ada")));
    let router = router(Arc::clone(&bench), HttpOptions::default()).layer(Extension(ada));
    let server = Server::serving(bench, router).await;
    assert_eq!(said(server.post(whoami.clone())).await, "ada false");
    let session = server.session().await;
    let request = server.post(whoami).header("mcp-session-id", &session);
    assert_eq!(said(request).await, "ada true");
}

#[tokio::test]
async fn trace_context_is_taken_from_the_metadata_and_else_from_http() {
    let server = Server::start().await;
    let of = |span: u8| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{span}-01");
    let seen = async |meta: &str| {
        let params = format!(r#""name":"trace","_meta":{{{meta}}}"#);
        let request = server.post(call("1", &params)).header("traceparent", of(2));
        let answer = json(request.send().await.unwrap()).await;
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let meta = format!(r#""traceparent":"{}","tracestate":"a=b""#, of(1));
    assert_eq!(
        seen(&meta).await,
        format!("{} a=b, beside {}", of(1), of(2))
    );
    assert_eq!(seen("").await, of(2));
    assert_eq!(seen(r#""traceparent":"00-1-2-01""#).await, of(2));
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
    let body = call("1", &format!(r#""name":"ü",{META}"#));
    let request = |name: &'static str| {
        server
            .post(body.clone())
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name)
    };
    let answer = json(request("=?base64?w7w=?=").send().await.unwrap()).await;
    assert_eq!(
        answer["error"]["code"], -32602,
        "it is unknown, but it was understood"
    );
    assert!(answer["error"]["message"].as_str().unwrap().contains('ü'));
    assert_eq!(request("=?base64?!?=").send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn lists_of_what_is_not_relayed_are_empty_in_both_eras() {
    let server = Server::start().await;
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let legacy = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        let answer = server.post(legacy).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(json(answer).await["result"], json!({ member: [] }));

        let answer = server.modern(method, "").send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let result = json(answer).await["result"].take();
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
        .post(call("1", r#""name":"client""#))
        .header("mcp-session-id", server.session().await);
    let own = META.replace(
        r#""_meta":{"#,
        r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cat","version":"2"},"#,
    );
    let modern = server
        .post(call("1", &format!(r#""name":"client",{own}"#)))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "client");
    for (request, client) in [(legacy, "raw 0"), (modern, "cat 2")] {
        let answer = json(request.send().await.unwrap()).await;
        assert_eq!(answer["result"]["content"][0]["text"], client, "{answer}");
    }
}
