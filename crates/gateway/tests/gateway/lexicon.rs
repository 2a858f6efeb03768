//! `[lexicon]`: verbs that the config adds, from the file to the call.

use serde_json::json;

use crate::scripted;
use crate::support::Gateway;

/// A server with unknown verbs.
fn server() -> String {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    scripted::server(
        "shed",
        &json!([tool("frobnify_lamp"), tool("zapplify_lamp")]),
    )
}

const LEXICON: &str = "[lexicon]\nread = [\"frobnify\"]\ndelete = [\"zapplify\"]\n";

#[tokio::test]
async fn an_added_verb_decides_calls() {
    let plain = Gateway::configured(&server()).await;
    let effect = async |gateway: &Gateway, tool: &str| {
        let view = gateway.call(tool, json!({})).await;
        let word = |key: &str| view[key].as_str().unwrap().to_owned();
        (word("effect"), word("cache"))
    };
    let seen = |effect: &str, cache: &str| (effect.to_owned(), cache.to_owned());
    for tool in ["shed__frobnify_lamp", "shed__zapplify_lamp"] {
        assert_eq!(effect(&plain, tool).await, seen("mutating", "invalidated"));
    }

    let gateway = Gateway::fixed(&format!("{LEXICON}{}", server())).await;
    let (read, delete) = ("shed__frobnify_lamp", "shed__zapplify_lamp");
    assert_eq!(effect(&gateway, read).await, seen("read_only", "miss"));
    assert_eq!(effect(&gateway, read).await, seen("read_only", "hit"));
    assert_eq!(
        effect(&gateway, delete).await,
        seen("destructive", "invalidated")
    );
    assert_eq!(effect(&gateway, read).await, seen("read_only", "miss"));
}
