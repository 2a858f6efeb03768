//! Identical calls at once run once: through the whole gateway, in both eras of the protocol.
//!
//! The server behind the gateway answers its first call when the test lets it, and the test lets
//! it only when the gateway says that all calls are in flight.

use std::path::PathBuf;

use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::scripted::Script;
use crate::support::{Client, Gateway, Pipe, call, until, within};

const CROWD: usize = 64;

/// Answers its first call when something is written into the pipe it is given. A second one is to
/// be seen in the answers.
const DESK: &str = r#"
if [ "$runs" = 1 ]; then read -r go < "$argument"; fi
says "run $runs"
"#;

/// A pipe, and a server that waits for it.
async fn desk(folder: &TempDir) -> (PathBuf, Script<'static>) {
    let go = folder.path().join("go");
    let made = Command::new("mkfifo").arg(&go).status();
    assert!(within("mkfifo", made).await.unwrap().success());
    let desk = Script {
        call: DESK,
        argument: Box::leak(go.to_str().unwrap().into()),
        ..Script::of_one("report")
    };
    (go, desk)
}

/// Waits for the server to read, which it does when the first call runs, and lets it answer.
async fn open(go: PathBuf) {
    let opened = tokio::task::spawn_blocking(move || std::fs::write(go, "go\n"));
    within("the execution", opened).await.unwrap().unwrap();
}

/// Asks as the client of a session does.
async fn asks(client: &Client) -> Value {
    let result = call(client, "desk__report", json!({ "year": 2026 })).await;
    serde_json::to_value(&result.content).unwrap()
}

#[tokio::test]
async fn a_crowd_of_both_eras_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (go, desk) = desk(&folder).await;
    let config = format!("{}instances = \"shared\"\n", desk.server("desk"));
    let gateway = Gateway::fixed(&config).await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let modern = ClientLifecycleMode::Discover { preferred_versions };
    let modern = gateway.connect(modern).await;
    let crowd = (0..CROWD).map(|n| asks(if n % 2 == 0 { &legacy } else { &modern }));
    let opened = async {
        let line = format!("callward_calls_in_flight {CROWD}");
        until("all calls in flight", || async {
            let (_, metrics) = gateway.get("/metrics").await;
            metrics.lines().any(|found| found == line).then_some(())
        })
        .await;
        open(go).await;
    };
    let (answers, ()) = tokio::join!(join_all(crowd), opened);
    let expected = json!([{ "type": "text", "text": "run 1" }]);
    assert!(answers.iter().all(|one| *one == expected), "{answers:?}");
    let misses = r#"callward_cache_lookups_total{callward_result="miss",callward_server_set="desk",gen_ai_tool_name="report"} 1"#;
    gateway
        .measures(&[misses, "callward_calls_in_flight 0"])
        .await;
}

#[tokio::test]
async fn a_crowd_on_one_pipe_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (go, desk) = desk(&folder).await;
    let mut pipe = Pipe::around(&desk).await;
    let mut asked = Vec::new();
    for _ in 0..CROWD {
        let params = json!({ "name": "report", "arguments": { "year": 2026 } });
        asked.push(pipe.send("tools/call", params).await);
    }
    // requests are read in order, so this is answered when all others are in
    pipe.request("ping", json!({})).await;
    open(go).await;
    for id in asked {
        let answer: Value = serde_json::from_str(&pipe.answer(id).await).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "run 1", "{answer}");
    }
    assert!(pipe.close().await);
}
