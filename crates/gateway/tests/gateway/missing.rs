//! `ask_missing`: the person at the client is asked for required arguments that a call lacks.

use std::sync::atomic::Ordering;

use callward::telemetry::names::metric::{self, label};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::asks::of_both_eras;
use crate::scrape::Scrape;
use crate::scripted::{Script, tool};
use crate::support::{Gateway, ends, said, text, within};

/// Answers `whole` if the call has all its arguments, and `lacks` otherwise.
const CALL: &str = r#"
case $line in
*'"lines":3'*) says whole ;;
*) says lacks ;;
esac
"#;

/// A tool with these required members.
pub(crate) fn needs(name: &str, reads: bool, properties: &Value) -> Value {
    let mut tool = tool(name, reads);
    let names: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    tool["inputSchema"] = json!({"type": "object", "properties": properties, "required": names});
    tool
}

fn config(ask_missing: bool) -> String {
    let both = json!({
        "path": {"type": "string"},
        "lines": {"type": "integer", "format": "uint32", "minimum": 1, "maximum": 9},
    });
    let tools = json!([
        needs("read_file", true, &both),
        needs("wipe", false, &both),
        needs("login", true, &json!({"password": {"type": "string"}})),
        needs("nested", true, &json!({"filter": {"type": "object"}})),
    ]);
    let script = Script {
        call: CALL,
        ..Script::counting(&tools)
    };
    format!(
        "ask_missing = {ask_missing}\n[approvals]\nhold = \"0s\"\n{}",
        script.server("host")
    )
}

fn params(name: &str, arguments: &Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().unwrap().clone();
    CallToolRequestParams::new(format!("host__{name}")).with_arguments(arguments)
}

#[tokio::test]
async fn what_a_call_lacks_is_asked_for_in_both_eras() {
    let gateway = Gateway::configured(&config(true)).await;
    let path = json!({"path": "a"});
    for client in of_both_eras(&gateway, Some(json!({"lines": 3}))).await {
        for (tool, arguments, answer, questions) in [
            ("read_file", &path, "whole", 1),
            ("read_file", &json!({"path": "a", "lines": 3}), "whole", 0),
            ("login", &json!({}), "lacks", 0),
            ("nested", &json!({}), "lacks", 0),
        ] {
            let before = client.service().asked.load(Ordering::SeqCst);
            let called = client.call_tool(params(tool, arguments));
            let result = json!(within("the answer", called).await.unwrap());
            assert_eq!(result["content"][0]["text"], answer, "{tool} {arguments}");
            let asked = client.service().asked.load(Ordering::SeqCst) - before;
            assert_eq!(asked, questions, "{tool} {arguments}");
        }
        client.cancel().await.unwrap();
    }
    for (says, questions, why) in [
        (None, 1, "the person declines"),
        (Some(json!({"lines": 10})), 3, "does not fit"),
    ] {
        for client in of_both_eras(&gateway, says.clone()).await {
            let refused = within("a refusal", client.call_tool(params("read_file", &path))).await;
            let refused = format!("{refused:?}");
            assert!(refused.contains("lacks required arguments"), "{refused}");
            assert!(refused.contains(why), "{refused}");
            assert_eq!(client.service().asked.load(Ordering::SeqCst), questions);
            client.cancel().await.unwrap();
        }
    }
    // a client that declares nothing is not asked
    let answer = gateway.mcp("host__read_file", path).await;
    assert_eq!(said(&answer), "lacks");
    let scrape = Scrape::of(&gateway).await;
    for (outcome, count) in [("accepted", 2.0), ("declined", 2.0), ("error", 3.0)] {
        let labels = [label::KIND, label::OUTCOME].map(|name| name.replace('.', "_"));
        let labels = [(&*labels[0], "form"), (&*labels[1], outcome)];
        let counted = scrape.value_with(metric::QUESTIONS, &labels);
        assert!((counted - count).abs() < 0.5, "{outcome} {counted}");
    }
}

#[tokio::test]
async fn the_whole_call_is_approved() {
    let gateway = Gateway::configured(&config(true)).await;
    // a modern one would come again, with what it had sent at first
    for client in of_both_eras(&gateway, Some(json!({"lines": 3})))
        .await
        .into_iter()
        .take(1)
    {
        let waits = client.call_tool(params("wipe", &json!({"path": "a"})));
        let waits = format!("{:?}", within("the answer", waits).await.unwrap());
        assert!(waits.contains("waits for a person"), "{waits}");
        client.cancel().await.unwrap();
    }
    let list = [&["approvals", "list", "--json"], &gateway.here()[..]].concat();
    let listed: Value = serde_json::from_str(text(&ends(&list).await.stdout)).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let id = listed[0]["id"].as_str().unwrap();
    let show = [&["approvals", "show", id], &gateway.here()[..]].concat();
    let shown = ends(&show).await;
    assert!(
        text(&shown.stdout).contains(r#"{"lines":3,"path":"a"}"#),
        "{shown:?}"
    );
}

#[tokio::test]
async fn without_the_key_nothing_is_asked_for() {
    let gateway = Gateway::configured(&config(false)).await;
    for client in of_both_eras(&gateway, Some(json!({"lines": 3}))).await {
        let called = client.call_tool(params("read_file", &json!({"path": "a"})));
        let result = json!(within("the answer", called).await.unwrap());
        assert_eq!(result["content"][0]["text"], "lacks");
        assert_eq!(client.service().asked.load(Ordering::SeqCst), 0);
        client.cancel().await.unwrap();
    }
}
