//! Rules over arguments: in the config, on the way of a call, and explained.

use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, ends, file, text};

/// The sample, of which the operator says that `add_note` destroys. What the rules say is made up:
/// any tool would do.
const CONFIG: &str = r#"
[servers.shop]
command = "CALLWARD"
args = ["sample"]

[servers.shop.tools.add_note]
destructiveHint = true
[[servers.shop.tools.add_note.rules]]
when = { text = "open" }
readOnlyHint = true
[[servers.shop.tools.add_note.rules]]
when = { text = { matches = "on_hold|pack(ed|ing)" }, order_id = { one_of = [1, 2] } }
destructiveHint = false
idempotentHint = true
"#;

fn config(text: &str) -> tempfile::NamedTempFile {
    let text = text.replace("CALLWARD", CALLWARD);
    file(format!("{text}\n[cache]\nfreshness = \"fixed\"\n"))
}

async fn explained(args: &[&str]) -> String {
    let done = ends(&[&["explain", "shop__add_note"], args].concat()).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout).to_owned()
}

#[tokio::test]
async fn a_call_is_explained_by_its_arguments_from_a_config_and_from_a_gateway() {
    let file = config(CONFIG);
    let path = file.path().to_str().unwrap();
    let gateway = Gateway::fixed(CONFIG).await;
    for place in [["--config", path], ["--url", gateway.admin.as_str()]] {
        let of = async |arguments: &str| explained(&[&[arguments], &place[..]].concat()).await;

        let read = of(r#"{"order_id": 1, "text": "open"}"#).await;
        for part in [
            r#"rule 1 of this tool: text = "open""#,
            "shop (weight 50)  <- chosen now",
            "kept 300 s",
            "<- this call",
        ] {
            assert!(read.contains(part), "{part} in\n{read}");
        }
        assert!(!read.contains("approval"), "{read}");

        let hold = of(r#"{"order_id": 2, "text": "on_hold"}"#).await;
        assert!(hold.contains("by rule 2 over its arguments"), "{hold}");
        assert!(hold.contains("keeps its own result 5 s"), "{hold}");

        let other = of(r#"{"order_id": 3, "text": "on_hold"}"#).await;
        for part in [
            "else: the call may destroy or overwrite something  <- this call",
            "weight 50 or more",
            "however it fails",
            "no approval layer",
        ] {
            assert!(other.contains(part), "{part} in\n{other}");
        }

        let twice = of(r#"{"order_id": 1, "text": "open", "text": "closed"}"#).await;
        assert!(twice.contains("the strictest of its plans"), "{twice}");
        assert!(twice.contains("effect   destructive"), "{twice}");
    }
    // who writes `hold` and means `on_hold` too can see why it is not
    let part = explained(&[r#"{"order_id": 2, "text": "hold"}"#, "--config", path]).await;
    assert!(
        part.contains("(text wholly matches \"on_hold|pack(ed|ing)\": does not hold here)"),
        "{part}"
    );
    let general = explained(&["--config", path]).await;
    assert!(
        general.contains("else: the call may destroy or overwrite something\n"),
        "{general}"
    );
    assert!(
        general.contains("2. where order_id is 1 or 2 and text wholly matches"),
        "{general}"
    );
}

#[tokio::test]
async fn an_explanation_is_data_too() {
    let file = config(CONFIG);
    let path = file.path().to_str().unwrap();
    let of = async |arguments: &[&str]| -> Value {
        let said = explained(&[arguments, &["--json", "--config", path]].concat()).await;
        serde_json::from_str(&said).unwrap()
    };
    let read = of(&[r#"{"order_id": 1, "text": "open"}"#]).await;
    assert_eq!(read["effect"], "read_only");
    assert_eq!(read["call"], json!({"plan": "rule", "rule": 1}));
    assert_eq!(read["keep"], json!({"enabled": true, "ttl_ms": 300_000}));
    assert_eq!(read["route"]["servers"][0]["server"], "shop");
    assert_eq!(read["rules"][0]["when"], r#"text = "open""#);
    assert_eq!(read["rules"][0]["hints"], json!({"readOnlyHint": true}));
    assert_eq!(read["argument_rules"], 2);
    let hints = read["hints"].as_array().unwrap();
    let hint = hints.iter().find(|hint| hint["hint"] == "readOnlyHint");
    let want = json!({
        "hint": "readOnlyHint", "value": true, "source": "operator",
        "reason": "rule 1 of this tool: text = \"open\"",
    });
    assert_eq!(hint, Some(&want), "{read}");

    let twice = of(&[r#"{"text": "open", "Text": "closed"}"#]).await;
    assert_eq!(twice["call"]["plan"], "strictest");
    assert!(
        twice["call"]["doubt"].as_str().unwrap().contains("`text`"),
        "{twice}"
    );
    assert_eq!(twice["keep"]["invalidates"], "shop");
    assert_eq!(twice["attempts"]["max"], 1);

    let inferred = |hint: &&Value| hint["source"] == "inferred";
    let inferred = twice["hints"].as_array().unwrap().iter().find(inferred);
    let strength = inferred.unwrap()["strength"].as_str().unwrap();
    assert!(["strong", "weak"].contains(&strength), "{twice}");

    let general = of(&[]).await;
    assert_eq!(general["call"], Value::Null);
    assert_eq!(general["effect"], "destructive");
}

#[tokio::test]
async fn what_is_no_object_is_not_explained() {
    for arguments in ["[1]", "{", "\"x\""] {
        let done = ends(&["explain", "get_order", arguments, "--", CALLWARD, "sample"]).await;
        assert_eq!(done.status.code(), Some(2), "{arguments}");
        assert!(
            text(&done.stderr).contains("not a JSON object"),
            "{arguments}"
        );
    }
    let done = ends(&[
        "explain",
        "get_order",
        r#"{"order_id": 1}"#,
        "--",
        CALLWARD,
        "sample",
    ])
    .await;
    assert!(text(&done.stdout).starts_with("get_order\n"), "{done:?}");
    assert!(
        text(&done.stdout).contains("effect   read_only"),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_call_obeys_the_rule_that_matches_it() {
    let gateway = Gateway::fixed(CONFIG).await;
    let call = async |note: &str| {
        let arguments = json!({"order_id": 1, "text": note});
        let view = gateway.call("shop__add_note", arguments).await;
        (
            view["effect"].as_str().unwrap().to_owned(),
            view["cache"].as_str().unwrap().to_owned(),
        )
    };
    let seen = |effect: &str, cache: &str| (effect.to_owned(), cache.to_owned());
    assert_eq!(call("open").await, seen("read_only", "miss"));
    assert_eq!(call("open").await, seen("read_only", "hit"));
    assert_eq!(call("packed").await, seen("idempotent", "invalidated"));
    assert_eq!(call("open").await, seen("read_only", "miss"));
    assert_eq!(call("closed").await, seen("destructive", "invalidated"));
    assert_eq!(call("open").await, seen("read_only", "miss"));
    // what the list of tools says is the tool's own plan, and that there is more to it
    let (_, tools) = gateway.get("/api/tools").await;
    let tools: Value = serde_json::from_str(&tools).unwrap();
    let tool = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "shop__add_note")
        .unwrap();
    assert_eq!(tool["effect"], "destructive");
    assert_eq!(tool["argument_rules"], 2);
}

#[tokio::test]
async fn a_bad_rule_is_refused_with_file_line_and_key() {
    let file = config(
        "[servers.a]\ncommand = \"x\"\n\n[[servers.a.tools.t.rules]]\nreadOnlyHint = true\n\
         [servers.a.tools.t.rules.when]\naction = { matches = \"(list\" }\n\"/a~2\" = 1\n",
    );
    let path = file.path().to_str().unwrap();
    let done = ends(&["serve", "--check", "--config", path]).await;
    assert!(!done.status.success());
    let said = text(&done.stderr);
    for part in [
        format!("{path}:7:"),
        format!("{path}:8:"),
        "`servers.a.tools.t.rules.1.when.action.matches`: \"(list\" is not a pattern".into(),
        "`servers.a.tools.t.rules.1.when./a~2`".into(),
    ] {
        assert!(said.contains(&part), "{part} in\n{said}");
    }
}
