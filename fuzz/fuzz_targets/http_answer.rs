//! Whatever an HTTP server answers a call with, the call ends, and a result is one JSON value.

#![no_main]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use callward_core::{ServerId, ToolServer};
use callward_mcp::client::{EraChoice, HttpSpec, Target, Upstream, UpstreamOptions};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// What calls are answered with.
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Stands for the id of the request; lengths stay as an input states them.
const ID: &[u8] = b"@@@@@@@@@@";

struct Client {
    runtime: Runtime,
    upstream: Upstream,
}

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream);
        }
    });
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let spec = HttpSpec::new(&format!("http://{address}/mcp")).expect("an address");
    let id = ServerId::new("fuzzed").expect("a name");
    let mut options = UpstreamOptions::default();
    options.era = EraChoice::Modern;
    let upstream = runtime.block_on(async { Upstream::start(id, Target::Http(spec), options) });
    Client { runtime, upstream }
});

/// Answers one request, and closes the connection.
fn serve(mut stream: TcpStream) {
    let Some(request) = read(&stream) else {
        return;
    };
    let answer = match request["method"].as_str() {
        Some("tools/call") => answer_to(&request["id"]),
        _ => {
            let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "fuzzed", "version": "1"}, "resultType": "complete",
                "ttlMs": 0, "cacheScope": "private", "tools": []});
            let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .into_bytes()
        }
    };
    let _closed = stream.write_all(&answer);
}

/// Puts the id of a request, which no input can know, in the places left for it.
fn answer_to(id: &Value) -> Vec<u8> {
    let mut answer = ANSWER.lock().expect("no holder panics").clone();
    let id = format!("{id:<width$}", id = id.to_string(), width = ID.len());
    for start in 0..answer.len().saturating_sub(ID.len() - 1) {
        let place = &mut answer[start..start + ID.len()];
        if place == ID {
            place.copy_from_slice(&id.as_bytes()[..ID.len()]);
        }
    }
    answer
}

fn read(stream: &TcpStream) -> Option<Value> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(stated) = line.strip_prefix("content-length:") {
            length = stated.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fuzz_target!(|answer: &[u8]| {
    *ANSWER.lock().expect("no holder panics") = answer.to_vec();
    let client = &*CLIENT;
    let tool = callward_testkit::tool("look").build();
    let call = callward_testkit::call(&tool, json!({}));
    let called = client.runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(20), client.upstream.call(call)).await
    });
    match called {
        Ok(Ok(output)) => {
            let read: Result<Value, _> = serde_json::from_slice(output.body());
            assert!(read.is_ok(), "{read:?}");
            assert!(output.body().len() <= answer.len());
        }
        Ok(Err(error)) => {
            assert!(!error.message().is_empty());
            assert!(error.message().len() <= 8 * answer.len() + 512);
        }
        Err(_) => panic!("the server has closed the connection, and the call does not end"),
    }
});
