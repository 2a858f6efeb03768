//! Prompts, resources and completions of several servers behind one endpoint.

use serde_json::{Value, json};

use crate::audit::records;
use crate::scripted::{Script, tool};
use crate::support::{Gateway, Legacy, answer_of, answered, ends, text};

/// Answers each method; a read says who answers, and how often it did.
const EACH: &str = r##"
offers=',"prompts":{"listChanged":true},"resources":{},"completions":{}' answer= code=-32601 reads=${reads:-0}
case $line in
*'"prompts/list"'*) case $argument in
  endless) answer='{"prompts":[{"name":"again"}],"nextCursor":""}' ;;
  forger) answer='{"prompts":[{"name":"a__greet"},{"name":"own"}]}' ;;
  *) answer='{"prompts":[{"name":"greet","z":1,"a":1e2}]}' ;;
  esac ;;
*'"prompts/get"'*'"name":"greet"'*)
  answer='{"messages":[{"role":"user","content":{"type":"resource_link","name":"r","uri":"doc:1"}}]}' ;;
*'"resources/list"'*) answer='{"resources":[{"uri":"doc:1","name":"r"}]}' ;;
*'"resources/templates/list"'*)
  [ "$argument" = a ] || answer='{"resourceTemplates":[{"uriTemplate":"doc:{id}","name":"t"}]}' ;;
*'"resources/read"'*'"uri":"doc:1"'*)
  reads=$((reads + 1))
  answer="{\"contents\":[{\"uri\":\"doc:1\",\"text\":\"$argument $reads\"}]}" ;;
*'"resources/read"'*) code=0 ;;
*'"completion/complete"'*'"uri":"doc:{id}"'*) answer='{"completion":{"values":["1"]}}' ;;
esac
"##;

fn server(name: &'static str, more: &str) -> String {
    let mut get = tool("get", true);
    get["_meta"] = json!({"ui": {"resourceUri": "ui://get"}});
    let script = Script {
        each: EACH,
        argument: name,
        ..Script::counting(&json!([get]))
    };
    format!("{}{more}\n", script.server(name))
}

/// Asks a legacy client's gateway, then as a modern client.
async fn both(gateway: &Gateway, client: &Legacy, method: &str, params: Value) -> [Value; 2] {
    let legacy = client.post(method, Some(7), params.clone()).await;
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    let mut request = gateway.modern(method, params.clone());
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    let (_, modern) = answered(request).await;
    [legacy.text().await.unwrap(), modern].map(|body| answer_of(&body))
}

#[tokio::test]
async fn prompts_and_resources_of_all_servers_are_relayed_in_both_eras() {
    let kept = "[servers.b.tools.\"resources/read\"]\nttl = \"1h\"";
    let config = format!("{}{}", server("a", ""), server("b", kept));
    let gateway = Gateway::fixed(&config).await;
    let client = Legacy::open(&gateway.url).await;
    let capabilities = &client.hello["result"]["capabilities"];
    assert_eq!(capabilities["prompts"], json!({"listChanged": true}));
    assert!(capabilities["completions"].is_object(), "{capabilities}");
    let template = json!({"type": "ref/resource", "uri": "doc:{id}#b"});
    let linked = json!([{"type": "resource_link", "name": "r", "uri": "doc:1#b"}]);
    for (method, params, path, expected) in [
        (
            "prompts/list",
            json!({}),
            "/prompts",
            json!([{"name": "a__greet", "z": 1, "a": 1e2}, {"name": "b__greet", "z": 1, "a": 1e2}]),
        ),
        (
            "tools/list",
            json!({}),
            "/tools/1/_meta/ui",
            json!({"resourceUri": "ui://get#b"}),
        ),
        (
            "prompts/get",
            json!({"name": "b__greet"}),
            "/messages/0/content",
            linked[0].clone(),
        ),
        (
            "resources/list",
            json!({}),
            "/resources/1/uri",
            json!("doc:1#b"),
        ),
        (
            "resources/templates/list",
            json!({}),
            "/resourceTemplates",
            json!([{"uriTemplate": "doc:{id}#b", "name": "t"}]),
        ),
        // the operator says for how long, so the second client gets what the first one got
        (
            "resources/read",
            json!({"uri": "doc:1#b"}),
            "/contents",
            json!([{"uri": "doc:1#b", "text": "b 1"}]),
        ),
        (
            "completion/complete",
            json!({"ref": template, "argument": {"name": "id", "value": ""}}),
            "/completion/values",
            json!(["1"]),
        ),
    ] {
        let [legacy, modern] = both(&gateway, &client, method, params).await;
        for answer in [&legacy, &modern] {
            let found = answer["result"].pointer(path);
            assert_eq!(found, Some(&expected), "{method}: {answer}");
        }
        assert_eq!(modern["result"]["resultType"], "complete", "{method}");
        let is_kept = method != "prompts/get" && method != "completion/complete";
        assert_eq!(modern["result"]["ttlMs"].is_number(), is_kept, "{modern}");
        assert_eq!(legacy["result"]["ttlMs"], Value::Null, "{method}");
    }
}

#[tokio::test]
async fn what_no_server_has_is_unknown_and_what_is_denied_too() {
    let rule = "[[authorize]]\ntool = [\"a.resources/*\"]\nthen = \"deny\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (a, b) = (server("a", ""), server("b", ""));
    let gateway = Gateway::fixed(&format!("{rule}{a}{b}[audit]\npath = {path:?}\n")).await;
    let client = Legacy::open(&gateway.url).await;
    let first = json!({"cursor": ""});
    let [listed, _] = both(&gateway, &client, "resources/list", first).await;
    let listed = listed["result"]["resources"].as_array().unwrap().len();
    assert_eq!(listed, 1);
    for (method, params, codes) in [
        ("prompts/get", json!({"name": "greet"}), [-32602, -32602]),
        ("prompts/get", json!({"name": "c__greet"}), [-32602, -32602]),
        ("prompts/get", json!({}), [-32602, -32602]),
        ("prompts/list", json!({"cursor": "x"}), [-32602, -32602]),
        ("resources/read", json!({"uri": "doc:1"}), [-32002, -32602]),
        (
            "resources/read",
            json!({"uri": "doc:1#a"}),
            [-32002, -32602],
        ),
        ("completion/complete", json!({"ref": {}}), [-32602, -32602]),
        ("roots/list", json!({}), [-32601, -32601]),
    ] {
        let answers = both(&gateway, &client, method, params.clone()).await;
        let found = answers.map(|answer| answer["error"]["code"].as_i64().unwrap());
        assert_eq!(found, codes, "{method} {params}");
    }
    // a tool is not called by the name of a method
    let error = gateway
        .mcp("b.resources/read", json!({"uri": "doc:1"}))
        .await;
    assert_eq!(error["error"]["code"], -32602, "{error}");
    gateway.stopped().await;
    let refused = records(&path, "refused");
    for named in ["prompts/get c__greet", "resources/read doc:1#a"] {
        let of = refused.iter().filter(|record| record["tool"] == named);
        assert_eq!(of.count(), 2, "{named}: {refused:?}");
    }
}

#[tokio::test]
async fn an_error_about_one_uri_refuses_no_other() {
    let gateway = Gateway::fixed(&server("b", "")).await;
    let client = Legacy::open(&gateway.url).await;
    for _ in 0..10 {
        let read = json!({"uri": "doc:9#b"});
        let answers = both(&gateway, &client, "resources/read", read).await;
        for answer in answers {
            assert_eq!(answer["error"]["code"], 0, "{answer}");
            assert_eq!(answer["error"]["message"], "no such method");
        }
    }
    let [read, _] = both(
        &gateway,
        &client,
        "resources/read",
        json!({"uri": "doc:1#b"}),
    )
    .await;
    assert_eq!(read["result"]["contents"][0]["text"], "b 1", "{read}");
}

#[tokio::test]
async fn a_list_without_end_hides_no_other_and_no_set_lists_for_another() {
    let forger = server("forger", "prefix = false");
    let config = format!("{}{}{forger}", server("a", ""), server("endless", ""));
    let gateway = Gateway::fixed(&config).await;
    let client = Legacy::open(&gateway.url).await;
    let [listed, _] = both(&gateway, &client, "prompts/list", json!({})).await;
    let listed = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["a__greet", "own"]);
    // what has the prefix of another set reaches that set alone
    for uri in ["doc:1#endless2", "doc:1"] {
        let params = json!({"uri": uri});
        let [read, _] = both(&gateway, &client, "resources/read", params).await;
        let text = &read["result"]["contents"][0]["text"];
        let expected = (uri == "doc:1").then_some("forger 1");
        assert_eq!(text.as_str(), expected, "{read}");
    }
}

#[tokio::test]
async fn commands_list_read_and_complete_what_servers_have() {
    let config = format!("{}{}", server("a", ""), server("b", ""));
    let gateway = Gateway::fixed(&config).await;
    let here = gateway.here();
    for (args, succeeds, said) in [
        (&["prompts"][..], true, "b__greet"),
        (&["prompts", "b__greet"], true, "doc:1#b"),
        (&["prompts", "nope"], false, "no prompt \"nope\""),
        (&["resources"], true, "doc:{id}#b"),
        (&["resources", "--json"], true, "\"uri\":\"doc:1#a\""),
        (&["read", "doc:1#b"], true, "b 1\n"),
        (&["read", "doc:1"], false, "no resource \"doc:1\""),
        (&["complete", "doc:{id}#b", "id"], true, "1\n"),
        (&["explain", "b.resources/read"], true, "read_only"),
        (&["explain", "b.resources/read", "{}"], true, "read_only"),
        (&["call", "b.resources/read"], false, "no tool"),
    ] {
        let done = ends(&[args, &here].concat()).await;
        let found = match succeeds {
            true => text(&done.stdout),
            false => text(&done.stderr),
        };
        assert_eq!(done.status.success(), succeeds, "{args:?}: {done:?}");
        assert!(found.contains(said), "{args:?}: {done:?}");
    }
}
