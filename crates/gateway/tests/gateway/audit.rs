//! `[audit]`, what the log of a gateway lacks that is killed or finds its disk full, and
//! `callward audit` of what was written.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::support::{CALLWARD, Gateway, answer_of, ends, program, result, sample, serve, text};
use crate::support::{until, within};

/// A config over the sample whose tools leave records; `more` stands in `[audit]`.
fn config(folder: &TempDir, more: &str) -> String {
    let path = folder.path().join("audit.jsonl");
    format!(
        "[audit]\npath = {path:?}\n{more}\n{}\
         [servers.orders.tools.get_order]\nsecurityLevel = \"restricted\"\nopenWorldHint = false\n\
         [servers.orders.tools.add_note]\nauditRequired = true\nopenWorldHint = true\n\
         [servers.orders.tools.sales_report]\nsecurityLevel = \"internal\"\nopenWorldHint = false\n",
        sample("orders")
    )
}

/// A config whose records, those of open-world tools too, are in one file.
fn in_one_file(folder: &TempDir, more: &str) -> String {
    let path = folder.path().join("audit.jsonl");
    let paths = format!("path = {path:?}\nopen_world_path = {path:?}");
    format!("[audit]\n{paths}\n{more}\n{}", sample("orders"))
}

pub(crate) fn records(path: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    let records = lines.filter_map(|line| serde_json::from_str(line).ok());
    records
        .filter(|record: &Value| record["kind"] == kind)
        .collect()
}

/// Returns these members of the records of a kind, those that are absent as `none`.
fn members<const N: usize>(path: &Path, kind: &str, members: [&str; N]) -> Vec<[String; N]> {
    let records = records(path, kind).into_iter();
    let of = |record: &Value, member| {
        let found = record.pointer(member).and_then(Value::as_str);
        found.unwrap_or("none").to_owned()
    };
    let all = records.map(|record| members.map(|member| of(&record, member)));
    all.collect()
}

/// Verifies a log; returns the exit code and what was found, as JSON and as text.
async fn verified(path: &Path) -> (Option<i32>, Value, String) {
    let verify = ["audit", "verify", path.to_str().unwrap()];
    let output = ends(&[&verify[..], &["--json"]].concat()).await;
    let said = text(&output.stdout);
    let found = serde_json::from_str(said).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let shown = ends(&verify).await;
    (output.status.code(), found, text(&shown.stdout).to_owned())
}

#[tokio::test]
async fn calls_through_a_gateway_leave_records_and_the_log_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = Gateway::fixed(&config(&folder, "redact = [\"order_id\"]")).await;
    for (tool, arguments) in [
        ("get_order", json!({"order_id": 1})),
        ("get_order", json!({"order_id": 1})),
        (
            "add_note",
            json!({"order_id": 2, "text": "call me: token=t0k3n"}),
        ),
        ("sales_report", json!({"region": "north"})),
        ("set_status", json!({"order_id": 2, "status": "shipped"})),
        ("nothing_of_the_kind", json!({})),
        ("get_order", json!([1])),
    ] {
        gateway.mcp(&format!("orders__{tool}"), arguments).await;
    }
    // no other gateway writes to the same log
    let other = ends(&["serve", "--http", "0", "--config", gateway.config()]).await;
    assert_eq!(other.status.code(), Some(2));
    let said = text(&other.stderr);
    assert!(said.contains("another process writes this log"), "{said}");
    gateway.stopped().await;

    let calls = members(&path, "call", ["/tool", "/level", "/cache"]);
    let expected = [
        ["get_order", "full", "miss"],
        ["get_order", "full", "hit"],
        ["sales_report", "partial", "none"],
    ];
    assert_eq!(calls, expected);
    let arguments = &records(&path, "call")[0]["arguments"];
    assert_eq!(*arguments, json!({"order_id": "[redacted]"}));
    let expected = [
        ["orders__nothing_of_the_kind", "catalogue"],
        ["get_order", "check"],
    ];
    let refused = members(&path, "refused", ["/tool", "/decision/by"]);
    assert_eq!(refused, expected);
    let apart = folder.path().join("audit.open-world.jsonl");
    // the second has no hint that asks for a record: it is a write
    let expected = [["add_note"], ["set_status"]];
    assert_eq!(members(&apart, "call", ["/tool"]), expected);
    assert!(!std::fs::read_to_string(&apart).unwrap().contains("t0k3n"));
    for log in [&path, &apart] {
        let (code, found, _) = verified(log).await;
        assert_eq!((code, &found["whole"]), (Some(0), &json!(true)), "{found}");
        assert_eq!(found["closed"], true);
    }

    for tool in ["get_order", "orders__get_order"] {
        let show = ["audit", "show", path.to_str().unwrap(), "--tool", tool];
        let answered = ["--outcome", "answered", "--last", "1", "--json"];
        let output = ends(&[show, answered].concat()).await;
        let one: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert_eq!(one["cache"], "hit");
        let refused = ends(&[&show[..], &["--outcome", "refused"]].concat()).await;
        let shown = text(&refused.stdout);
        assert!(
            shown.contains("orders  get_order  refused (check)"),
            "{shown}"
        );
    }

    // an edit that keeps every length
    let edited = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, edited.replacen("answered", "cancelled", 1)).unwrap();
    let (code, found, shown) = verified(&path).await;
    assert_eq!((code, &found["fault"]["line"]), (Some(1), &json!(3)));
    assert!(shown.contains("NOT WHOLE"), "{shown}");
}

#[tokio::test]
async fn calls_are_recorded_by_their_effect_with_the_client() {
    let (write, delete) = ("set_status", "delete_order");
    for (record, tools) in [
        ("", &[write, delete][..]),
        ("record = \"mutating\"", &[write, delete]),
        ("record = \"destructive\"", &[delete]),
        ("record = \"all\"", &["get_order", write, delete]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let more = format!("fsync = \"every_record\"\n{record}");
        let gateway = Gateway::configured(&in_one_file(&folder, &more)).await;
        for tool in ["get_order", write, delete] {
            let arguments = json!({"order_id": 1, "status": "shipped"});
            result(&gateway.mcp(&format!("orders__{tool}"), arguments).await);
        }
        let expected: Vec<_> = tools
            .iter()
            .map(|tool| [*tool, "full", "test", "1"])
            .collect();
        let shown = ["/tool", "/level", "/client/name", "/client/version"];
        assert_eq!(members(&path, "call", shown), expected, "{record}");
        for [address] in members(&path, "call", ["/client/address"]) {
            assert!(address.starts_with("127.0.0.1:"), "{address}");
        }
        for tool in gateway.json::<Vec<Value>>("/api/tools").await {
            let name = tool["name"].as_str().unwrap();
            if tools.contains(&name.trim_start_matches("orders__")) {
                assert_eq!(tool["recorded"], "full", "{tool}");
            }
        }
    }
}

/// Serves a config where no file can grow beyond 16 blocks of 512 bytes: further writes fail,
/// as they do on a full disk.
async fn with_small_files(config: &str) -> Gateway {
    let (served, file) = serve(config);
    // without the trap, the signal ends the process that writes too much
    let limit = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
    let mut command = program("sh", &["-c", limit, "sh", CALLWARD]);
    command.args(served.as_std().get_args());
    Gateway::started(command, Some(file), None).await
}

/// Reads a counter or a gauge of the audit log off the page for Prometheus.
async fn counted(gateway: &Gateway, series: &str) -> u64 {
    let (_, page) = gateway.get("/metrics").await;
    let series = format!("callward_audit_{series} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&*series));
    value
        .unwrap_or_else(|| panic!("{series}: {page}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_full_disk_fails_closed_or_open_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = with_small_files(&config(&folder, "")).await;
    gateway.call_order(1).await;
    // alone: of those that are written together, one that finds no space leaves out all
    until("the first record", || async {
        (!records(&path, "call").is_empty()).then_some(())
    })
    .await;
    let refusal = until("the full disk", || async {
        let answer = gateway.call_order(1).await;
        answer["error"].is_object().then_some(answer)
    })
    .await;
    let why = refusal["error"]["message"].as_str().unwrap();
    assert!(why.contains("the log cannot be written"), "{refusal}");
    assert_eq!(refusal["error"]["delivery"], "not_sent", "{refusal}");
    assert_eq!(counted(&gateway, "failing").await, 1);
    let refused = counted(&gateway, "refused_calls_total").await;
    assert!(refused >= 1);
    // what needs no full record goes on
    let region = json!({"region": "north"});
    result(&gateway.call("orders__sales_report", region).await);
    assert!(gateway.call_order(1).await["error"].is_object());
    assert_eq!(counted(&gateway, "refused_calls_total").await, refused + 1);
    drop(gateway);

    let folder = tempfile::tempdir().unwrap();
    let gateway = with_small_files(&config(&folder, "on_failure = \"fail_open\"")).await;
    until("the full disk", || async {
        result(&gateway.call_order(1).await);
        (counted(&gateway, "failing").await == 1).then_some(())
    })
    .await;
    for _ in 0..3 {
        result(&gateway.call_order(1).await);
    }
    assert_eq!(counted(&gateway, "refused_calls_total").await, 0);
    // what waits for the disk to have space is lost with the process, and it says so
    gateway.signal("-TERM").await;
    let (_, said) = gateway.ended().await;
    assert!(said.contains("audit records are lost"), "{said}");
}

#[tokio::test]
async fn a_file_is_closed_when_it_is_a_second_old_and_the_next_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::fixed(&config(&folder, "max_age = \"1s\"")).await;
    let closed = folder.path().join("audit.000001.jsonl");
    until("the next file", || async {
        gateway.call_order(1).await;
        closed.exists().then_some(())
    })
    .await;
    gateway.stopped().await;
    let (code, found, _) = verified(&folder.path().join("audit.jsonl")).await;
    assert_eq!((code, &found["whole"]), (Some(0), &json!(true)), "{found}");
    assert!(found["files"].as_u64() >= Some(2), "{found}");
}

/// Makes calls, each with a number of its own, until the gateway is gone. Returns which were
/// answered.
async fn calls(gateway: &Gateway, numbers: &AtomicU64, answered: UnboundedSender<String>) {
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed).to_string();
        let report = json!({ "region": number, "delay_ms": 0 });
        let request = gateway.mcp_request("orders__sales_report", &report, &json!({}));
        let Ok(answer) = request.send().await else {
            return;
        };
        let Ok(answer) = answer.text().await else {
            return;
        };
        result(&answer_of(&answer));
        answered.send(number).unwrap();
    }
}

/// Kills a gateway after this many answers; returns how many of the answered calls have no record.
async fn lost(fsync: &str, answers: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    // files that are full after a few records: each brings the disk into play
    let more = format!("record = \"all\"\nfsync = \"{fsync}\"\nmax_bytes = \"4KiB\"");
    let gateway = Gateway::configured(&in_one_file(&folder, &more)).await;
    let (sender, mut answered) = mpsc::unbounded_channel();
    let numbers = AtomicU64::new(0);
    let callers = join_all((0..32).map(|_| calls(&gateway, &numbers, sender.clone())));
    drop(sender);
    let mut reported = HashSet::new();
    let kill = async {
        while reported.len() < answers {
            reported.extend(answered.recv().await);
        }
        gateway.signal("-KILL").await;
    };
    within("the kill", async { tokio::join!(callers, kill) }).await;
    while let Some(number) = answered.recv().await {
        reported.insert(number);
    }
    drop(gateway.ended().await);

    let (code, found, _) = verified(&folder.path().join("audit.jsonl")).await;
    let found = (code, &found["closed"]);
    assert_eq!(found, (Some(0), &json!(false)));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        for record in records(&file.unwrap().path(), "call") {
            reported.remove(record["arguments"]["region"].as_str().unwrap());
        }
    }
    reported.len()
}

#[tokio::test]
async fn a_killed_gateway_has_lost_as_few_records_as_is_asked_for() {
    let lost_of_many = lost("1s", 3000).await;
    assert!(lost_of_many <= 1000, "{lost_of_many}");
    assert_eq!(lost("every_record", 300).await, 0);
}

#[tokio::test]
async fn a_log_that_was_not_closed_is_whole_and_verify_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let config = in_one_file(&folder, "record = \"all\"\nfsync = \"every_record\"");
    let mut killed = Gateway::configured(&config).await;
    killed.call_order(1).await;
    killed.killed().await;
    let (code, _, shown) = verified(&path).await;
    assert!(shown.contains(": whole, not closed: "), "{shown}");
    assert!(shown.contains("may have no record"), "{shown}");
    assert_eq!(code, Some(0));

    // the next process closes it, and the log still shows the outcome of the first
    Gateway::configured(&config).await.stopped().await;
    let (code, found, shown) = verified(&path).await;
    assert!(shown.contains(": whole: "), "{shown}");
    let unclosed = "1 process ended without closing";
    assert!(shown.contains(unclosed), "{shown}");
    let found = (code, &found["closed"], &found["unclosed"]);
    assert_eq!(found, (Some(0), &json!(true), &json!(1)));
}
