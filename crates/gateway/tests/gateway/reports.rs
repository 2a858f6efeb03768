//! What the gateway adds to answers and spans: the status of the cache and the decision trail, for
//! who asks; and that no server can write it.

use callward::core::trail::Trail;
use callward::telemetry::names;
use callward_testkit::collector::{Collected, Collector};
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{CALLWARD, Gateway, Pipe, ends, result, said, sample, within};

const CACHE: &str = "io.callward/cache";
const TRAIL: &str = "io.callward/trail";
const UPSTREAM: &str = "io.callward/upstream";
/// Has all results report.
const REPORTING: &str = "trail = true\n[cache]\nreport = true\n";

/// Checks what results say, by the status of the cache.
fn says(result: &Value, status: Option<&str>) {
    let meta = &result["_meta"];
    assert_eq!(meta[CACHE]["status"].as_str(), status, "{result}");
    assert_eq!(meta[TRAIL].is_object(), status.is_some(), "{result}");
    let has_age = meta[CACHE]["age_ms"].is_u64();
    assert_eq!(has_age, status == Some("hit"), "{result}");
}

/// The calls of a client: their parameters but for the prefix of the tool, and what the result
/// says.
fn calls(prefix: &str) -> Vec<(Value, Option<&'static str>)> {
    let calls = [
        ("get_order", 1, true, Some("miss")),
        ("get_order", 1, false, None),
        ("get_order", 1, true, Some("hit")),
        ("add_note", 1, true, Some("invalidated")),
        // a failure of the tool itself is an answer too
        ("get_order", 99, true, Some("miss")),
    ];
    let params = calls.map(|(tool, order, asks, status)| {
        let mut params =
            json!({"name": format!("{prefix}{tool}"), "arguments": {"order_id": order}});
        if tool == "add_note" {
            params["arguments"]["text"] = "x".into();
        }
        if asks {
            params["_meta"] = json!({CACHE: true, TRAIL: true});
        }
        (params, status)
    });
    params.into()
}

#[tokio::test]
async fn a_result_reports_if_its_client_asks_in_both_eras_and_over_pipes() {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    for mode in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions },
    ] {
        let gateway = Gateway::sample().await;
        let client = gateway.connect(mode).await;
        for (params, status) in calls("orders__") {
            let params = serde_json::from_value(params).unwrap();
            let result = within("a call", client.call_tool(params)).await.unwrap();
            says(&serde_json::to_value(result).unwrap(), status);
        }
    }
    let mut pipe = Pipe::open(&["run", "--ttl", "5m", "--", CALLWARD, "sample"]).await;
    for (params, status) in calls("") {
        let answer = pipe.request("tools/call", params).await;
        says(&answer["result"], status);
    }
    assert!(pipe.close().await);
}

/// Answers `meta` with our keys in the `_meta` of its result, and others with them in an error.
const FORGED: &str = r#"
code=-32050
case $line in
  *'"name":"meta"'*)
    code=
    says forged ',"_meta":{"mine":1,"io.callward/trail":"forged","io.callward/cache":{"status":"forged"}}' ;;
  *'"name":"ours"'*) code=-33010 ;;
esac
data='{"mine":1,"kind":"forged","delivery":"not_sent","server":"forged","retryAfterMs":1,"attempts":9,
"history":["forged"],"outcome":{"verifyWith":"forged"},"io.callward/trail":"forged"}'
[ -z "$code" ] || {
  printf '%s' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":$code,\"message\":\"no\",\"data\":$data}}" |
    tr -d '\n'
  echo
  continue
}
"#;

#[tokio::test]
async fn no_server_writes_under_our_keys() {
    let names = "kind delivery server retryAfterMs attempts history outcome io.callward/trail";
    let plans = json!({"io.callward/plans": {"desk__listed": "forged"}});
    let mut listed = tool("listed", true);
    listed["_meta"] = plans.clone();
    listed["_meta"]["mine"] = 1.into();
    let tools = json!([
        tool("meta", true),
        tool("ours", true),
        tool("theirs", true),
        listed
    ]);
    let server = Script {
        call: FORGED,
        ..Script::counting(&tools)
    };
    let forged = json!({TRAIL: "forged", CACHE: {"status": "forged"}});
    for (settings, has_reports) in [("", false), (REPORTING, true)] {
        let gateway = Gateway::fixed(&format!("{settings}{}", server.server("desk"))).await;
        // the second time from the cache
        for status in ["miss", "hit"] {
            let answer = gateway.mcp("desk__meta", json!({})).await;
            says(result(&answer), has_reports.then_some(status));
            let meta = &answer["result"]["_meta"];
            assert_eq!((&meta[UPSTREAM], &meta["mine"]), (&forged, &json!(1)));
        }
        for (tool, code) in [("desk__ours", -33010), ("desk__theirs", -32050)] {
            let answer = gateway.mcp(tool, json!({})).await;
            let (error, data) = (&answer["error"], &answer["error"]["data"]);
            assert_eq!(error["code"], code, "{answer}");
            for name in names.split(' ') {
                let shown = data[name].to_string();
                assert!(!shown.contains("forged"), "{name} in {answer}");
            }
            assert_eq!(data[TRAIL].is_object(), has_reports, "{answer}");
            assert_eq!(data[UPSTREAM]["mine"], 1, "{answer}");
            let found = ["delivery", "kind", "server"].map(|name| data[name].as_str());
            let expected = match code {
                -33010 => ["answered", "server_fault", "desk"].map(Some),
                _ => [None; 3],
            };
            assert_eq!(found, expected, "{answer}");
        }
        let client = gateway.connect(ClientLifecycleMode::Initialize).await;
        let tools = within("the list", client.list_all_tools()).await.unwrap();
        let tool = tools.iter().find(|tool| tool.name == "desk__listed");
        let listed = serde_json::to_value(tool).unwrap();
        let expected = json!({"mine": 1, UPSTREAM: plans});
        assert_eq!(listed["_meta"], expected, "{listed}");
    }
}

#[tokio::test]
async fn what_a_client_writes_under_our_keys_decides_only_what_the_docs_say() {
    let reads = Script::of_one("get").server("shelf") + "state = \"shelf\"\n";
    let writes = Script {
        call: r#"case $line in *callward*|*forged*) says forged ;; *) says "put $runs" ;; esac"#,
        ..Script::counting(&json!([tool("put", false)]))
    };
    let gateway = Gateway::fixed(&(reads + &writes.server("desk"))).await;
    let keys = "trail cache upstream plans idempotencyKey idempotency principal roles approved \
                deadline freshness hops priority retry";
    let (mut runs, none) = (0, json!({}));
    for key in keys.split(' ') {
        for value in [json!(true), json!("forged"), json!({"status": "forged"})] {
            let meta = json!({format!("io.callward/{key}"): value});
            let (read, write) = (
                gateway.mcp_with("shelf__get", &none, &meta).await,
                gateway.mcp_with("desk__put", &none, &meta).await,
            );
            if key == "idempotencyKey" && !value.is_string() {
                let codes = [&read, &write].map(|answer| &answer["error"]["code"]);
                assert_eq!(codes, [-32602; 2], "{meta}");
                continue;
            }
            // the read is answered from the cache, the write runs once, and the server sees no key
            runs += 1;
            assert_eq!(
                [said(&read), said(&write)],
                ["run 1", &format!("put {runs}")],
                "{meta}"
            );
            let asks = ["trail", "cache"].contains(&key) && value == true;
            for answer in [&read, &write] {
                let meta = answer["result"]["_meta"].to_string();
                let added = meta.matches("io.callward/").count();
                assert_eq!(added, usize::from(asks), "{answer}");
            }
        }
    }
}

/// Calls over HTTP as a client that asks for the trail.
async fn asking(gateway: &Gateway, tool: &str, arguments: &Value) -> Value {
    gateway
        .mcp_with(tool, arguments, &json!({ TRAIL: true }))
        .await
}

/// What a stage decided first: verdict and reason.
fn first<'a>(trail: &'a Value, stage: &str) -> (&'a str, &'a str) {
    let decisions = trail["decisions"].as_array().unwrap();
    let found = decisions.iter().find(|decision| decision["stage"] == stage);
    let found = found.unwrap_or_else(|| panic!("no {stage} in {trail}"));
    let reason = found["reason"].as_str().unwrap_or_default();
    (found["verdict"].as_str().unwrap(), reason)
}

#[tokio::test]
async fn what_is_explained_is_what_the_result_tells_and_what_the_span_tells() {
    let collector = Collector::start().await;
    let endpoint = collector.endpoint();
    let telemetry = format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n");
    let gateway = Gateway::configured(&(telemetry + &sample("orders"))).await;
    let mut lines = Vec::new();
    for (params, _) in &calls("orders__")[1..4] {
        let (tool, arguments) = (params["name"].as_str().unwrap(), &params["arguments"]);
        let given = arguments.to_string();
        let explain = [&["explain", "--json", tool, &given], &gateway.here()[..]].concat();
        let mut explained: Value = serde_json::from_slice(&ends(&explain).await.stdout).unwrap();
        let expected = explained["trail"].take();
        let answer = asking(&gateway, tool, arguments).await;
        let observed = &answer["result"]["_meta"][TRAIL];
        let tenses = (&expected["tense"], &observed["tense"]);
        assert_eq!(tenses, (&json!("expected"), &json!("observed")));
        for same in ["set", "tool", "annotations", "effect", "plan"] {
            assert_eq!(expected[same], observed[same], "{same}");
        }
        assert_eq!(first(&expected, "plan"), first(observed, "plan"));
        assert_eq!(first(&expected, "cache").0, first(observed, "cache").0);
        assert_eq!(first(observed, "answer").0, "answered");
        let trail: Trail = serde_json::from_value(observed.clone()).unwrap();
        lines.push(trail.to_line());
    }
    gateway.stopped().await;
    // each is the same trail, in one line
    let spans = collector.spans();
    let decisions = |span: &Collected| span.attributes.get(names::DECISIONS).cloned();
    let shown: Vec<_> = spans.iter().filter_map(decisions).collect();
    assert_eq!(shown, lines);
}

#[tokio::test]
async fn an_error_has_the_trail_only_if_the_client_asks() {
    let server = Script::counting(&json!([tool("drop_table", false)])).server("db");
    let gateway = Gateway::configured(&format!("{server}weight = 10\n")).await;
    let answer = asking(&gateway, "db__drop_table", &json!({})).await;
    let trail = &answer["error"]["data"][TRAIL];
    for (stage, verdict) in [
        ("route", "no_server"),
        ("retry", "stop"),
        ("confirm", "ask"),
    ] {
        assert_eq!(first(trail, stage).0, verdict, "{answer}");
    }
    let silent = gateway.mcp("db__drop_table", json!({})).await;
    assert!(silent["error"]["data"].get(TRAIL).is_none(), "{silent}");
}
