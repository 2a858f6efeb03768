//! Identical calls at once run once: through the whole gateway, in both eras of the protocol.
//!
//! The server behind the gateway answers no client before the test lets it, and the test lets it
//! only when the gateway says that all calls are in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::scripted::Script;
use crate::support::{Client, Gateway, Pipe, call, until, within};

const CROWD: usize = 64;

/// A server with one tool that reads, and that answers only when it is let.
#[derive(Debug)]
struct Desk {
    executions: AtomicUsize,
    open: Semaphore,
}

impl Desk {
    /// Listens on a port of its own; returns the URL too.
    async fn listen() -> (Arc<Self>, String) {
        let desk = Arc::new(Self {
            executions: AtomicUsize::new(0),
            open: Semaphore::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/mcp", post(answer))
            .with_state(desk.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (desk, url)
    }

    fn executions(&self) -> usize {
        self.executions.load(Ordering::SeqCst)
    }

    async fn report(&self) -> Value {
        let n = self.executions.fetch_add(1, Ordering::SeqCst) + 1;
        // later ones are let through, too, so that a test that fails says how many ran
        let _open = self.open.acquire().await.unwrap();
        json!({ "content": [{ "type": "text", "text": format!("run {n}") }] })
    }
}

async fn answer(State(desk): State<Arc<Desk>>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let Some(id) = request.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = match request["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "desk", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "report",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        }] }),
        "tools/call" => desk.report().await,
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return message(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn message(content: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, content.to_string()).into_response()
}

/// Asks as the client of a session does.
async fn asks(client: &Client) -> Value {
    let result = call(client, "desk__report", arguments()).await;
    serde_json::to_value(&result.content).unwrap()
}

fn arguments() -> Value {
    json!({ "year": 2026 })
}

#[tokio::test]
async fn a_crowd_of_both_eras_runs_once() {
    let (desk, url) = Desk::listen().await;
    let gateway = Gateway::fixed(&format!("[servers.desk]\nurl = \"{url}\"\n")).await;
    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let modern = ClientLifecycleMode::Discover { preferred_versions };
    let modern = gateway.connect(modern).await;
    let crowd = (0..CROWD).map(|n| asks(if n % 2 == 0 { &legacy } else { &modern }));
    // the desk opens when all are in
    let opened = async {
        let line = format!("callward_calls_in_flight {CROWD}");
        until("all calls in flight", || async {
            let (_, metrics) = gateway.get("/metrics").await;
            metrics.lines().any(|found| found == line).then_some(())
        })
        .await;
        until("the execution", || async {
            // a round trip between two looks
            gateway.get_url(&gateway.public("/healthz")).await;
            (desk.executions() > 0).then_some(())
        })
        .await;
        desk.open.add_permits(1);
    };
    let (answers, ()) = tokio::join!(join_all(crowd), opened);
    let expected = json!([{ "type": "text", "text": "run 1" }]);
    assert!(answers.iter().all(|one| *one == expected), "{answers:?}");
    assert_eq!(desk.executions(), 1);
    let misses = r#"callward_cache_lookups_total{callward_result="miss",callward_server_set="desk",gen_ai_tool_name="report"} 1"#;
    gateway
        .measures(&[misses, "callward_calls_in_flight 0"])
        .await;
}

/// Answers its first call when something is written into the pipe it is given. A second one is to
/// be seen in the answers.
const DESK: &str = r#"
if [ "$runs" = 1 ]; then read -r go < "$argument"; fi
says "run $runs"
"#;

#[tokio::test]
async fn a_crowd_on_one_pipe_runs_once() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let made = Command::new("mkfifo").arg(&go).status();
    assert!(within("mkfifo", made).await.unwrap().success());
    let desk = Script {
        call: DESK,
        argument: go.to_str().unwrap(),
        ..Script::of_one("report")
    };
    let server = desk.command();
    let served = server.iter().map(String::as_str);
    let args: Vec<_> = ["run", "--ttl", "5m", "--"]
        .into_iter()
        .chain(served)
        .collect();
    let mut pipe = Pipe::open(&args).await;
    let mut asked = Vec::new();
    for _ in 0..CROWD {
        let params = json!({ "name": "report", "arguments": arguments() });
        asked.push(pipe.send("tools/call", params).await);
    }
    // requests are read in order, so this is answered when all others are in
    pipe.request("ping", json!({})).await;
    // opening waits for the one who reads, so this writes when the first call runs
    let opened = tokio::task::spawn_blocking(move || std::fs::write(go, "go\n"));
    within("the execution", opened).await.unwrap().unwrap();
    for id in asked {
        let answer: Value = serde_json::from_str(&pipe.answer(id).await).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "run 1", "{answer}");
    }
    assert!(pipe.close().await);
}
