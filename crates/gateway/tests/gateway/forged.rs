//! A server that writes what only the gateway says: into the `_meta` of its tools and results, and
//! into the `data` of its errors.

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{Gateway, within};

const FORGED: &str = r#"
case $line in
  *'"name":"meta"'*)
    says forged ',"_meta":{"mine":1,"io.callward/trail":"forged","io.callward/cache":{"status":"forged"}}' ;;
  *'"name":"ours"'*)
    code=-32010 ;;
  *)
    code=-32050 ;;
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

async fn gateway(settings: &str) -> Gateway {
    let tool = |name: &str| {
        json!({
            "name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        })
    };
    let server = Script {
        call: FORGED,
        each: "code=",
        ..Script::counting(&json!(["meta", "ours", "theirs"].map(tool)))
    };
    Gateway::fixed(&format!("{settings}{}", server.server("desk"))).await
}

const REPORTING: &str = "trail = true\n[cache]\nreport = true\n";
const UPSTREAM: &str = "io.callward/upstream";

#[tokio::test]
async fn no_server_writes_under_our_keys_of_the_meta_of_results() {
    let forged = json!({"io.callward/trail": "forged", "io.callward/cache": {"status": "forged"}});
    let quiet = gateway("").await;
    // the second time from the cache
    for _ in 0..2 {
        let answer = quiet.mcp("desk__meta", json!({})).await;
        let expected = json!({"mine": 1, UPSTREAM: forged});
        assert_eq!(answer["result"]["_meta"], expected, "{answer}");
    }
    let telling = gateway(REPORTING).await;
    for status in ["miss", "hit"] {
        let answer = telling.mcp("desk__meta", json!({})).await;
        let meta = &answer["result"]["_meta"];
        assert_eq!(meta["io.callward/cache"]["status"], status, "{answer}");
        assert!(meta["io.callward/trail"].is_object(), "{answer}");
        assert_eq!(meta[UPSTREAM], forged, "{answer}");
    }
}

#[tokio::test]
async fn no_server_writes_under_our_keys_of_the_meta_of_tools() {
    let forged = json!({"io.callward/plans": {"desk__ask": "forged"}});
    let tool = json!({
        "name": "ask", "inputSchema": {"type": "object"},
        "_meta": {"mine": 1, "io.callward/plans": {"desk__ask": "forged"}},
    });
    let server = Script::counting(&json!([tool])).server("desk");
    let gateway = Gateway::configured(&server).await;
    let client = gateway.connect(ClientLifecycleMode::Initialize).await;
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    let listed = serde_json::to_value(&tools[0]).unwrap();
    let expected = json!({"mine": 1, UPSTREAM: forged});
    assert_eq!(listed["_meta"], expected, "{listed}");
}

#[tokio::test]
async fn no_server_writes_under_our_names_of_the_data_of_errors() {
    let names = [
        "kind",
        "delivery",
        "server",
        "retryAfterMs",
        "attempts",
        "history",
        "outcome",
        "io.callward/trail",
    ];
    for (settings, tells) in [("", false), (REPORTING, true)] {
        let gateway = gateway(settings).await;
        for (tool, code) in [("desk__ours", -32010), ("desk__theirs", -32050)] {
            let answer = gateway.mcp(tool, json!({})).await;
            let (error, data) = (&answer["error"], &answer["error"]["data"]);
            assert_eq!(error["code"], code, "{answer}");
            for name in names {
                let shown = data[name].to_string();
                assert!(!shown.contains("forged"), "{name} in {answer}");
            }
            assert_eq!(data["io.callward/trail"].is_object(), tells, "{answer}");
            assert_eq!(data[UPSTREAM]["mine"], 1, "{answer}");
            match code {
                -32010 => {
                    assert_eq!(data["delivery"], "answered", "{answer}");
                    assert_eq!(data["kind"], "server_fault", "{answer}");
                    assert_eq!(data["server"], "desk", "{answer}");
                    assert_eq!(data["retryAfterMs"], Value::Null, "{answer}");
                }
                _ => assert_eq!(data.get("delivery"), None, "{answer}"),
            }
        }
    }
}
