//! The decision trail in its forms: `explain`, spans, the `_meta` of results, the `data` of errors,
//! tables.

use callward::core::trail::Trail;
use callward::telemetry::names;
use callward_testkit::collector::Collector;
use serde_json::{Value, json};

use crate::scripted;
use crate::support::{Gateway, answer_of, ends, within};

const KEY: &str = "io.callward/trail";

/// Calls over HTTP as a client that asks.
async fn asking(gateway: &Gateway, tool: &str, arguments: Value) -> Value {
    let request = gateway.mcp_request_with(tool, &arguments, &json!({ KEY: true }));
    let answer = within(tool, request.send()).await.unwrap();
    answer_of(&answer.text().await.unwrap())
}

/// What a stage decided first: verdict and reason.
fn first<'a>(trail: &'a Value, stage: &str) -> (&'a str, &'a str) {
    let decisions = trail["decisions"].as_array().unwrap();
    let found = decisions.iter().find(|decision| decision["stage"] == stage);
    let found = found.unwrap_or_else(|| panic!("no {stage} in {trail}"));
    (
        found["verdict"].as_str().unwrap(),
        found["reason"].as_str().unwrap_or_default(),
    )
}

async fn explained(gateway: &Gateway, tool: &str, arguments: &str) -> Value {
    let args = [
        "explain",
        "--json",
        tool,
        arguments,
        "--url",
        &gateway.admin,
    ];
    let done = ends(&args).await;
    let mut view: Value = serde_json::from_slice(&done.stdout).unwrap();
    view["trail"].take()
}

#[tokio::test]
async fn what_is_explained_is_what_the_result_tells_and_what_the_span_tells() {
    let collector = Collector::start().await;
    let config = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\n\
         [servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n",
        collector.endpoint()
    );
    let gateway = Gateway::configured(&config).await;
    let mut lines = Vec::new();
    for (tool, arguments) in [
        ("orders__get_order", json!({"order_id": 1})),
        ("orders__get_order", json!({"order_id": 1})),
        ("orders__add_note", json!({"order_id": 1, "text": "x"})),
    ] {
        let expected = explained(&gateway, tool, &arguments.to_string()).await;
        let answer = asking(&gateway, tool, arguments).await;
        let observed = &answer["result"]["_meta"][KEY];
        assert_eq!(
            (&expected["tense"], &observed["tense"]),
            (&"expected".into(), &"observed".into())
        );
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
    let spans = spans
        .iter()
        .filter_map(|span| span.attributes.get(names::DECISIONS));
    assert!(
        spans.eq(lines.iter()),
        "{lines:#?} {:#?}",
        collector.spans()
    );
}

#[tokio::test]
async fn errors_tell_it_too_and_nobody_is_told_who_did_not_ask() {
    let drop = json!({"name": "drop_table", "inputSchema": {"type": "object"},
        "annotations": {"destructiveHint": true}});
    let server = scripted::server("db", &json!([drop]));
    let light = server.replace("[servers.db]", "[servers.db]\nweight = 10");
    let gateway = Gateway::configured(&light).await;
    let answer = asking(&gateway, "db__drop_table", json!({})).await;
    let trail = &answer["error"]["data"][KEY];
    assert_eq!(first(trail, "route").0, "nobody", "{answer}");
    assert_eq!(first(trail, "retry").0, "stop", "{answer}");
    assert_eq!(first(trail, "confirm").0, "ask", "{answer}");
    let silent = gateway.mcp("db__drop_table", json!({})).await;
    assert!(silent["error"]["data"].get(KEY).is_none(), "{silent}");
}
