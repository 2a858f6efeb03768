//! The instructions of servers, as clients of the gateway get them.

use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{Gateway, answer_of, http, message, until, within};

const KIND: &str = r#"more=',"instructions":"Be kind."'"#;

/// Returns the instructions that a legacy client gets.
async fn initialized(gateway: &Gateway) -> Value {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let request = message(http().post(&gateway.url), &body);
    let answer = within("initialize", request.send()).await.unwrap();
    answer_of(&answer.text().await.unwrap())["result"]["instructions"].take()
}

#[tokio::test]
async fn one_servers_instructions_are_passed_on_as_they_are() {
    let script = Script {
        each: KIND,
        ..Script::of_one("look")
    };
    let gateway = Gateway::configured(&script.server("a")).await;
    assert_eq!(initialized(&gateway).await, "Be kind.");
}

#[tokio::test]
async fn several_stand_under_their_names_also_when_one_connects_late() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let kind = Script {
        each: KIND,
        ..Script::of_one("look")
    };
    let late = Script {
        each: r#"[ -e "$argument" ] || exit 1; more=',"instructions":"Be quick."'"#,
        argument: ready.to_str().unwrap(),
        ..Script::of_one("see")
    };
    let config = kind.server("kind") + &late.server("late");
    let gateway = Gateway::configured(&config).await;
    assert_eq!(initialized(&gateway).await, "# kind\n\nBe kind.");

    std::fs::write(&ready, "").unwrap();
    let both = until("the late server", || async {
        let said = initialized(&gateway).await;
        said.as_str()?.contains("late").then_some(said)
    })
    .await;
    assert_eq!(both, "# kind\n\nBe kind.\n\n# late\n\nBe quick.");
}
