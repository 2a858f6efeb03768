//! `--record`, and `callward replay --calls` of what it wrote.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::{Gateway, Pipe, call, ends, fed, file, signal, text};

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn count(lines: &[Value], status: &str) -> u64 {
    lines.iter().filter(|line| line["cache"] == status).count() as u64
}

async fn replayed(file: &str) -> Value {
    let output = ends(&["replay", "--json", "--calls", file]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(text(&output.stdout)).unwrap()
}

#[tokio::test]
async fn what_a_gateway_records_replays_as_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let path = path.to_str().unwrap();
    let gateway = Gateway::recording(path).await;

    let legacy = gateway.connect(ClientLifecycleMode::Initialize).await;
    for _ in 0..2 {
        call(&legacy, "orders__get_order", json!({"order_id": 1})).await;
    }
    for _ in 0..3 {
        gateway
            .mcp("orders__get_order", json!({"order_id": 2}))
            .await;
    }
    let set = json!({"order_id": 2, "status": "shipped"});
    for _ in 0..2 {
        gateway.mcp("orders__set_status", set.clone()).await;
    }
    let note = json!({"order_id": 2, "text": "a secret of the customer"});
    for _ in 0..2 {
        gateway.mcp("orders__add_note", note.clone()).await;
    }
    let slow = json!({"region": "north", "delay_ms": 700});
    join_all((0..6).map(|_| gateway.mcp("orders__sales_report", slow.clone()))).await;
    let seen = gateway
        .call("orders__get_order", json!({"order_id": 2}))
        .await;
    assert_eq!(seen["cache"], "miss");
    let seen = gateway
        .call("orders__get_order", json!({"order_id": 2}))
        .await;
    assert_eq!(seen["cache"], "hit");
    gateway
        .mcp("orders__get_order", json!({"order_id": 99}))
        .await;

    drop(legacy);
    signal("-TERM", gateway.child.id().unwrap()).await;
    let (well, said) = gateway.ended().await;
    assert!(well && said.contains("recorded 18 calls in "), "{said}");

    let recorded = std::fs::read_to_string(path).unwrap();
    assert!(!recorded.contains("secret"), "{recorded}");
    let recorded = lines(&recorded);
    assert_eq!(recorded.len(), 18);
    let (hits, joined) = (count(&recorded, "hit"), count(&recorded, "joined"));
    assert_eq!((hits, joined), (5, 5), "{recorded:#?}");

    let replayed = replayed(path).await;
    let ours = &replayed["policies"][0];
    assert_eq!(replayed["calls"], 18);
    assert_eq!(
        (&ours["hits"], &ours["joined"]),
        (&json!(hits), &json!(joined)),
        "{ours}"
    );
    assert_eq!(
        (&ours["stale"], &ours["writes_swallowed"]),
        (&json!(0), &json!(0)),
        "{ours}"
    );
    assert_eq!(ours["repeats_answered"], 1, "{ours}");
    let blind = &replayed["policies"][3];
    assert_eq!(
        (&blind["policy"], &blind["writes_swallowed"]),
        (&json!("blind, TTL"), &json!(1))
    );
}

#[tokio::test]
async fn a_wrapped_server_is_recorded_with_its_arguments_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl.gz");
    let path = path.to_str().unwrap();
    let args = [
        "run",
        "--ttl",
        "5m",
        "--record",
        path,
        "--record-arguments",
        "--",
        crate::support::CALLWARD,
        "sample",
    ];
    for _ in 0..2 {
        let mut pipe = Pipe::open(&args).await;
        for id in [1, 1, 2] {
            pipe.call("get_order", json!({"order_id": id})).await;
        }
        assert!(pipe.close().await);
    }
    let mut recorded = String::new();
    MultiGzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut recorded)
        .unwrap();
    let recorded = lines(&recorded);
    let asked: Vec<_> = recorded
        .iter()
        .map(|line| line["args"]["order_id"].as_u64())
        .collect();
    assert_eq!(
        asked,
        [Some(1), Some(1), Some(2), Some(1), Some(1), Some(2)]
    );
    assert_eq!(recorded[0]["tool"], "get_order");
    assert_eq!(recorded[0]["effect"], "read_only");
    assert_ne!(recorded[0]["trace"], recorded[3]["trace"]);
    // each run of the gateway began with nothing
    assert_eq!(
        replayed(path).await["policies"][0]["hits"],
        count(&recorded, "hit")
    );
    assert_eq!(count(&recorded, "hit"), 2);
}

#[tokio::test]
async fn what_cannot_be_recorded_to_is_said_at_the_start() {
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--record",
        "/nowhere/calls.jsonl",
    ];
    let output = ends(&args).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("/nowhere/calls.jsonl cannot be recorded to"),
        "{said}"
    );
}

#[tokio::test]
async fn a_table_shows_the_policies_side_by_side() {
    let calls = "{\"tool\":\"get_a\",\"write\":false}\n{\"tool\":\"get_a\",\"write\":false}\n";
    let output = fed(&["replay", "--calls", "-"], calls.as_bytes()).await;
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let policies = [
        "callward",
        "no cache",
        "flush on any write",
        "blind, TTL",
        "blind, LRU",
        "blind, FIFO",
        "blind, LFU",
        "blind, S3-FIFO",
        "blind, W-TinyLFU",
    ];
    for policy in policies {
        assert!(
            table.contains(&format!("\n{policy}  ")),
            "{policy}: {table}"
        );
    }
    assert!(
        table.contains("50.00 %") && table.contains("unknown"),
        "{table}"
    );
}

#[tokio::test]
async fn an_invalid_line_is_reported_and_the_rest_replayed() {
    let calls = file("{\"tool\":\"get_a\"}\n{\"tool\":7}\n{\"tool\":\"get_a\"}\n");
    let path = calls.path().to_str().unwrap();
    let output = ends(&["replay", "--json", "--calls", path]).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("{path}:2: invalid type: integer `7`")),
        "{said}"
    );
    let found: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(
        (&found["calls"], &found["left_out"]),
        (&json!(2), &json!(1))
    );
}

#[tokio::test]
async fn scopes_and_definitions_come_from_files() {
    let calls = "{\"tool\":\"peek\",\"args\":{\"id\":1}}\n{\"tool\":\"poke\",\"args\":{\"id\":2}}\n\
                 {\"tool\":\"peek\",\"args\":{\"id\":1}}\n";
    let tools = file(r#"[{"name":"peek","annotations":{"readOnlyHint":true}},{"name":"poke"}]"#);
    let scopes = file("[peek]\nreads = [\"item:{id}\"]\n[poke]\nwrites = [\"item:{id}\"]\n");
    let [tools, scopes] = [&tools, &scopes].map(|file| file.path().to_str().unwrap());
    let hits = async |args: &[&str]| {
        let all = [&["replay", "--json", "--calls", "-"], args].concat();
        let output = fed(&all, calls.as_bytes()).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let found: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        found["policies"][0]["hits"].as_u64()
    };
    assert_eq!(hits(&["--tools", tools]).await, Some(0));
    assert_eq!(hits(&["--tools", tools, "--scopes", scopes]).await, Some(1));
    let wrong = file("[peek]\nreads = [\"item:{\"]\n");
    let wrong = wrong.path().to_str().unwrap();
    let output = fed(
        &["replay", "--calls", "-", "--scopes", wrong],
        calls.as_bytes(),
    )
    .await;
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains(wrong) && said.contains("not closed"),
        "{said}"
    );
}
