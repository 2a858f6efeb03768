//! The servers behind the gateway: registers over HTTP, with faults, and notes over a pipe.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::wire;
use crate::world::World;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const FAILED: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\n";

/// The tools of the registers. None of their writes is safe to repeat.
fn registers() -> Value {
    let key = json!({"type": "object", "properties": {"key": {"type": "integer"}}});
    json!([
        {"name": "look", "inputSchema": key, "annotations": {"readOnlyHint": true}},
        {"name": "put", "inputSchema": key,
            "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false}},
        {"name": "swap", "inputSchema": key,
            "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false}},
    ])
}

/// The tools of the notes, which each process keeps for itself.
fn notes() -> Value {
    let schema = json!({"type": "object"});
    json!([
        {"name": "recall", "inputSchema": schema, "annotations": {"readOnlyHint": true}},
        {"name": "keep", "inputSchema": schema,
            "annotations": {"readOnlyHint": false, "idempotentHint": false}},
    ])
}

/// Answers what is no call; `None` for a notification.
fn about(request: &Value, tools: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let result = match request["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "soak", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": tools}),
        Some("ping") => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn text(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

/// Serves the registers on a free port.
pub(crate) async fn serve(listener: TcpListener, world: Arc<World>, faults: u32) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, world.clone(), faults));
        }
    }
}

async fn connection(stream: TcpStream, world: Arc<World>, faults: u32) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some(heard)) = wire::read(&mut stream).await {
        let request: Value = serde_json::from_slice(&heard.body).unwrap_or_default();
        let written = if !heard.first.starts_with("POST") {
            wire::write(&mut stream, "HTTP/1.1 405 x\r\n", "").await
        } else if request["method"] == "tools/call" {
            match called(&mut stream, &request, &world, faults).await {
                Some(written) => written,
                // the connection breaks
                None => return,
            }
        } else {
            match about(&request, &registers()) {
                Some(answer) => wire::write(&mut stream, HEAD, &answer.to_string()).await,
                None => wire::write(&mut stream, "HTTP/1.1 202 x\r\n", "").await,
            }
        };
        if written.is_err() {
            return;
        }
    }
}

/// Runs a call and answers it, or does what a broken server or network does.
async fn called(
    stream: &mut BufReader<TcpStream>,
    request: &Value,
    world: &Arc<World>,
    faults: u32,
) -> Option<std::io::Result<()>> {
    let arguments = &request["params"]["arguments"];
    let key = arguments["key"].as_u64().unwrap_or(0);
    let tool = request["params"]["name"].as_str().unwrap_or_default();
    let number = arguments["number"].as_u64().unwrap_or(0);
    let run = |world: &World| match tool {
        "look" => world.read(key),
        _ => {
            world.write(key, number);
            number
        }
    };
    let fault = match fastrand::u32(..1000) < faults {
        true => fastrand::u32(..6),
        false => u32::MAX,
    };
    match fault {
        // lost before it ran
        0 => return None,
        // lost after it ran
        1 => {
            run(world);
            return None;
        }
        // lost, and it lands within a second
        2 => {
            let (world, tool) = (world.clone(), tool.to_owned());
            tokio::spawn(async move {
                sleep(Duration::from_millis(fastrand::u64(..900))).await;
                if tool != "look" {
                    world.write(key, number);
                }
            });
            return None;
        }
        // failed, before or after it ran
        3 => {
            if fastrand::bool() {
                run(world);
            }
            return Some(wire::write(stream, FAILED, "failed").await);
        }
        // slow on both ways
        4 => sleep(Duration::from_millis(fastrand::u64(..300))).await,
        // an error of JSON-RPC after it ran
        5 => {
            run(world);
            let error = json!({"code": -32603, "message": "failed"});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            return Some(wire::write(stream, HEAD, &answer.to_string()).await);
        }
        _ => {}
    }
    let value = run(world);
    if fault == 4 {
        sleep(Duration::from_millis(fastrand::u64(..300))).await;
    }
    let answer = text(&request["id"], &format!("{tool} {key} {value}"));
    Some(wire::write(stream, HEAD, &answer.to_string()).await)
}

/// Serves notes on standard input and output: a process remembers the last one it was given.
pub(crate) fn serve_notes() -> std::io::Result<()> {
    let mut note = "nothing".to_owned();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?).unwrap_or_default();
        let answer = match request["params"]["name"].as_str() {
            Some("keep") => {
                let kept = request["params"]["arguments"]["note"].as_str();
                note = kept.unwrap_or_default().to_owned();
                Some(text(&request["id"], "kept"))
            }
            Some("recall") => Some(text(&request["id"], &note)),
            _ => about(&request, &notes()),
        };
        if let Some(answer) = answer {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}
