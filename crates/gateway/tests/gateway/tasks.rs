//! Calls that go on as tasks, over real connections.

use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, Legacy, answer_of, answered, text};

/// A modern server whose only task is `own-1`.
const EACH: &str = r##"
answer= code=-32601
case $line in
*'"server/discover"'*) answer='{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},
  "extensions":{"io.modelcontextprotocol/tasks":{}}}}'
  answer=$(printf %s "$answer" | tr -d '\n') ;;
*'"method":"tasks/get"'*'"taskId":"own-1"'*) answer='{"resultType":"complete","taskId":"own-1",
  "status":"completed","result":{"content":[],"_meta":{"io.callward/trail":1}}}'
  answer=$(printf %s "$answer" | tr -d '\n') ;;
*'"method":"tasks/update"'*'"inputResponses":{"a":{}},"taskId":"own-1"'*) answer='{}' ;;
*'"method":"tasks/cancel"'*'"taskId":"own-1"'*) answer='{}' ;;
esac
"##;
const CALL: &str = r#"
case $line in
*modelcontextprotocol/tasks*) result='{"resultType":"task","taskId":"own-1","status":"working"}' ;;
*) says plain ;;
esac"#;

/// Asks as a modern client, with these capabilities.
async fn ask(gateway: &Gateway, method: &str, params: Value, capabilities: &Value) -> Value {
    let name = params["name"]
        .as_str()
        .or_else(|| params["taskId"].as_str());
    let name = name.unwrap_or_default().to_owned();
    let request = gateway.modern(method, params).header("mcp-name", name);
    let mut request = request.build().unwrap();
    let body = request.body().and_then(|body| body.as_bytes()).unwrap();
    let mut body: Value = serde_json::from_slice(body).unwrap();
    let place = "io.modelcontextprotocol/clientCapabilities";
    body["params"]["_meta"][place] = capabilities.clone();
    *request.body_mut() = Some(body.to_string().into());
    let http = crate::support::http();
    let (_, answer) = answered(reqwest::RequestBuilder::from_parts(http, request)).await;
    answer_of(&answer)
}

#[tokio::test]
async fn tasks_are_relayed_under_sealed_ids_to_clients_that_declare_them() {
    let mut required = tool("build", false);
    required["execution"] = json!({"taskSupport": "required"});
    let script = Script {
        each: EACH,
        call: CALL,
        ..Script::counting(&json!([required, tool("wait", false)]))
    };
    let gateway = Gateway::fixed(&format!("{}era = \"modern\"\n", script.server("a"))).await;
    let (with, without) = (
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        json!({}),
    );
    let said = ask(&gateway, "server/discover", json!({}), &without).await;
    assert_eq!(
        said["result"]["capabilities"]["extensions"],
        with["extensions"]
    );

    let legacy = Legacy::open(&gateway.url).await;
    assert_eq!(
        legacy.hello["result"]["capabilities"]["extensions"],
        Value::Null
    );
    let listed = legacy.post("tools/list", Some(2), json!({})).await;
    let listed = answer_of(&listed.text().await.unwrap());
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    for (capabilities, tools) in [(&with, 2), (&without, 1)] {
        let listed = ask(&gateway, "tools/list", json!({}), capabilities).await;
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), tools);
    }

    let call = json!({"name": "a__wait", "arguments": {}});
    let plain = ask(&gateway, "tools/call", call.clone(), &without).await;
    assert_eq!(plain["result"]["content"][0]["text"], "plain", "{plain}");
    let made = ask(&gateway, "tools/call", call, &with).await;
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let id = made["result"]["taskId"].as_str().unwrap();
    assert!(!id.contains("own"), "{id}");

    let state = ask(&gateway, "tasks/get", json!({"taskId": id}), &with).await;
    assert_eq!(state["result"]["taskId"], id, "{state}");
    assert_eq!(state["result"]["status"], "completed");
    let theirs = &state["result"]["result"]["_meta"]["io.callward/upstream"];
    assert_eq!(theirs["io.callward/trail"], 1, "{state}");
    let update = json!({"taskId": id, "inputResponses": {"a": {}}});
    for (method, params) in [
        ("tasks/update", update),
        ("tasks/cancel", json!({"taskId": id})),
    ] {
        let done = ask(&gateway, method, params.clone(), &with).await;
        assert_eq!(done["result"]["resultType"], "complete", "{method}: {done}");
        let refused = ask(&gateway, method, params, &without).await;
        let needed = &refused["error"]["data"]["requiredCapabilities"];
        assert_eq!(
            (&refused["error"]["code"], needed),
            (&json!(-32021), &with),
            "{refused}"
        );
    }
    for id in ["own-1", &format!("{id}A"), ""] {
        let refused = ask(&gateway, "tasks/get", json!({"taskId": id}), &with).await;
        assert_eq!(refused["error"]["code"], -32602, "{id}: {refused}");
    }
    let old = legacy
        .post("tasks/get", Some(3), json!({"taskId": id}))
        .await;
    let old = answer_of(text(&old.bytes().await.unwrap()));
    assert_eq!(old["error"]["code"], -32601, "{old}");
}
