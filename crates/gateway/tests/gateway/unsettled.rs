//! Writes whose end is not seen, and what the cache serves after them.

use std::path::Path;

use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{Gateway, ends, text, until, within};

/// A shop with a read and a write, whose calls run this.
async fn shop(call: &str, argument: &Path) -> Gateway {
    let tool = |name: &str, reads: bool| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": reads}});
    let script = Script {
        tools: json!([tool("look", true), tool("change", false)]),
        each: "",
        call,
        argument: argument.to_str().unwrap(),
    };
    let server = script.server("shop");
    Gateway::fixed(&format!("{server}instances = \"shared\"\n")).await
}

/// Reads, and returns what the cache did.
async fn look(gateway: &Gateway) -> Value {
    gateway.call("shop__look", json!({})).await["cache"].take()
}

async fn cache(gateway: &Gateway) -> Value {
    gateway.json("/api/cache").await
}

#[tokio::test]
async fn a_write_whose_client_hangs_up_settles_with_its_answer() {
    // answers a change when the file is there
    let call = r#"
        case $line in *'"change"'*)
          : > "$argument.got"
          while [ ! -e "$argument" ]; do sleep 0.02; done ;;
        esac
        says "run $runs""#;
    let directory = tempfile::tempdir().unwrap();
    let may_answer = directory.path().join("may answer");
    let gateway = shop(call, &may_answer).await;

    let change = gateway.mcp_request("shop__change", &json!({})).send();
    let change = tokio::spawn(change);
    let got = directory.path().join("may answer.got");
    until("the change at the server", || async {
        cache(&gateway).await;
        got.exists().then_some(())
    })
    .await;
    change.abort();
    assert!(within("the client", change).await.is_err());
    std::fs::write(&may_answer, "").unwrap();

    until("a hit", || async {
        let was = look(&gateway).await;
        let cache = cache(&gateway).await;
        assert_eq!(cache["unsettled"], json!([]), "{cache}");
        (was == "hit").then_some(())
    })
    .await;
}

#[tokio::test]
async fn state_is_told_that_a_write_may_still_change() {
    let call = r#"
        case $line in *'"change"'*) exit 3 ;; esac
        says "run $runs""#;
    let directory = tempfile::tempdir().unwrap();
    let mut gateway = shop(call, directory.path()).await;
    assert_eq!(cache(&gateway).await["unsettled"], json!([]));
    let changed = gateway.call("shop__change", json!({})).await;
    assert_eq!(changed["error"]["kind"], "outcome_unknown", "{changed}");

    let reported = &cache(&gateway).await["unsettled"][0];
    assert_eq!(reported["state"], "the shared state", "{reported}");
    assert_eq!(reported["tool"], "change", "{reported}");
    assert_eq!(reported["reason"], "outcome_unknown", "{reported}");
    assert_eq!(look(&gateway).await, "bypass");
    assert_eq!(look(&gateway).await, "bypass");
    let (_, metrics) = gateway.get("/metrics").await;
    assert!(
        metrics.contains("\ncallward_cache_unsettled 1\n"),
        "{metrics}"
    );
    let url = gateway.at("");
    let shown = ends(&["cache", "--url", &url]).await;
    let shown = text(&shown.stdout);
    let row = "shop  change  the shared state  outcome_unknown";
    assert!(shown.contains(row), "{shown}");
    gateway.says("a write may still take effect").await;
}
