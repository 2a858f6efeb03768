//! `--record`, and `callward replay --calls` of what it wrote.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use futures_util::future::join_all;
use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::{Gateway, Pipe, call, ends, signal, text};

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
        gateway.order(2).await;
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
    let seen = gateway.call_order(2).await;
    assert_eq!(seen["cache"], "miss");
    let seen = gateway.call_order(2).await;
    assert_eq!(seen["cache"], "hit");
    gateway.order(99).await;

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
