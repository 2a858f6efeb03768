//! Tools that read a clock or move on by themselves, behind the real binary.

use serde_json::{Value, json};

use crate::scripted;
use crate::support::{Gateway, ends, text};

fn tools() -> Value {
    json!([
        {
            "name": "get_current_time",
            "description": "Returns the current time in a timezone.",
            "inputSchema": {"type": "object", "properties": {"timezone": {"type": "string"}}},
            "annotations": {"readOnlyHint": true, "idempotentHint": true},
        },
        {
            "name": "get_city",
            "description": "Returns one city.",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
            "annotations": {"readOnlyHint": true},
        },
    ])
}

#[tokio::test]
async fn what_reads_a_clock_is_never_kept_though_declared_to_only_read() {
    let gateway = Gateway::configured(&scripted::server("world", &tools())).await;
    let call = async |tool: &str| {
        let view = gateway.call(tool, json!({"timezone": "UTC"})).await;
        let said = view["result"]["content"][0]["text"].as_str().unwrap();
        (view["cache"].as_str().unwrap().to_owned(), said.to_owned())
    };
    let seen = |cache: &str, said: &str| (cache.to_owned(), said.to_owned());
    assert_eq!(call("world__get_city").await, seen("miss", "run 1"));
    assert_eq!(
        call("world__get_current_time").await,
        seen("bypass", "run 2")
    );
    assert_eq!(
        call("world__get_current_time").await,
        seen("bypass", "run 3")
    );
    // asking what time it is changes nothing, so what is kept stays
    assert_eq!(call("world__get_city").await, seen("hit", "run 1"));
}

#[tokio::test]
async fn why_nothing_is_kept_is_explained() {
    let server = scripted::command(&tools());
    let mut args = vec!["explain", "get_current_time", "{}", "--"];
    args.extend(server.iter().map(String::as_str));
    let done = ends(&args).await;
    let said = text(&done.stdout);
    assert!(said.contains("This call only reads"), "{said}");
    assert!(said.contains("neither looked up nor kept: `"), "{said}");
    assert!(said.contains("changes by itself"), "{said}");
}
