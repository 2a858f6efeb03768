//! What the audit log of a gateway that is killed lacks, and what `callward audit verify` says of
//! it.
#![cfg(unix)]

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::audit::{records, verified};
use crate::support::{Gateway, answer_of, ends, signal, text, within};

/// A gateway that records each call in full.
async fn gateway(folder: &Path, more: &str) -> Gateway {
    let path = folder.join("audit.jsonl");
    Gateway::configured(&format!(
        "[audit]\npath = {path:?}\nopen_world_path = {path:?}\nrecord = \"all\"\n{more}\n\
         [servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n"
    ))
    .await
}

/// Makes calls, each with a number of its own, until the gateway is gone. Tells which were
/// answered.
async fn calls(gateway: &Gateway, numbers: &AtomicU64, answered: UnboundedSender<String>) {
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed).to_string();
        let report = json!({ "region": number, "delay_ms": 0 });
        let request = gateway.mcp_request("orders__sales_report", &report);
        let Ok(answer) = request.send().await else {
            return;
        };
        let Ok(answer) = answer.text().await else {
            return;
        };
        assert!(answer_of(&answer)["result"].is_object(), "{answer}");
        answered.send(number).unwrap();
    }
}

/// Kills a gateway after this many answers; returns how many of the answered calls have no record.
async fn lost(fsync: &str, answers: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    // files that are full after a few records: each brings the disk into play
    let more = format!("fsync = \"{fsync}\"\nmax_bytes = \"4KiB\"");
    let gateway = gateway(folder.path(), &more).await;
    let (sender, mut answered) = mpsc::unbounded_channel();
    let numbers = AtomicU64::new(0);
    let callers = join_all((0..32).map(|_| calls(&gateway, &numbers, sender.clone())));
    drop(sender);
    let mut reported = HashSet::new();
    let kill = async {
        while reported.len() < answers {
            reported.extend(answered.recv().await);
        }
        signal("-KILL", gateway.child.id().unwrap()).await;
    };
    within("the kill", async { tokio::join!(callers, kill) }).await;
    while let Some(number) = answered.recv().await {
        reported.insert(number);
    }
    drop(gateway.ended().await);

    let (code, found) = verified(&folder.path().join("audit.jsonl")).await;
    assert_eq!(
        (code, &found["closed"]),
        (Some(0), &json!(false)),
        "{found}"
    );
    for file in std::fs::read_dir(folder.path()).unwrap() {
        for record in records(&file.unwrap().path(), "call") {
            reported.remove(record["arguments"]["region"].as_str().unwrap());
        }
    }
    reported.len()
}

#[tokio::test]
async fn a_killed_gateway_has_lost_at_most_a_thousand_records_of_answers() {
    let lost = lost("1s", 3000).await;
    assert!(lost <= 1000, "{lost}");
}

#[tokio::test]
async fn a_killed_gateway_has_every_record_where_that_is_asked_for() {
    assert_eq!(lost("every_record", 300).await, 0);
}

#[tokio::test]
async fn a_log_that_was_not_closed_is_whole_and_verify_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let shown = ["audit", "verify", path.to_str().unwrap()];
    let mut killed = gateway(folder.path(), "fsync = \"every_record\"").await;
    killed
        .mcp("orders__get_order", json!({"order_id": 1}))
        .await;
    killed.killed().await;
    let output = ends(&shown).await;
    let said = text(&output.stdout);
    assert!(said.contains(": whole, not closed: "), "{said}");
    assert!(said.contains("may have no record"), "{said}");
    assert_eq!(output.status.code(), Some(0));

    // the next process closes it, and the log still shows the outcome of the first
    gateway(folder.path(), "").await.stopped().await;
    let output = ends(&shown).await;
    let said = text(&output.stdout);
    assert!(said.contains(": whole: "), "{said}");
    assert!(said.contains("1 processes ended without closing"), "{said}");
    assert_eq!(output.status.code(), Some(0));
    let (_, found) = verified(&path).await;
    assert_eq!(
        (&found["closed"], &found["unclosed"]),
        (&json!(true), &json!(1))
    );
}
