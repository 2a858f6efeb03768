//! `[audit]`, and `callward audit` of what it wrote.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Gateway, ends, signal, text, until};

/// A gateway over the sample whose tools leave records; `more` stands in `[audit]`.
async fn gateway(folder: &Path, more: &str) -> Gateway {
    Gateway::fixed(&config(folder, more)).await
}

fn config(folder: &Path, more: &str) -> String {
    let path = folder.join("audit.jsonl");
    format!(
        "[audit]\npath = {path:?}\n{more}\n\
         [servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n\
         [servers.orders.tools.get_order]\nsecurityLevel = \"restricted\"\nopenWorldHint = false\n\
         [servers.orders.tools.add_note]\nauditRequired = true\nopenWorldHint = true\n\
         [servers.orders.tools.sales_report]\nsecurityLevel = \"internal\"\nopenWorldHint = false\n"
    )
}

pub(crate) fn records(path: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|record: &Value| record["kind"] == kind)
        .collect()
}

/// Verifies a log; returns the exit code and what was found.
pub(crate) async fn verified(path: &Path) -> (Option<i32>, Value) {
    let path = path.to_str().unwrap();
    let output = ends(&["audit", "verify", "--json", path]).await;
    let said = text(&output.stdout);
    let found = serde_json::from_str(said).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), found)
}

#[tokio::test]
async fn calls_through_a_gateway_leave_records_and_the_log_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = gateway(folder.path(), "redact = [\"order_id\"]").await;
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
    let (_, metrics) = gateway.get("/metrics").await;
    assert!(metrics.contains("callward_audit_records"), "{metrics}");
    gateway.stopped().await;

    let calls = records(&path, "call");
    let reported = calls.iter().map(|call| {
        let members = [&call["tool"], &call["level"], &call["cache"]];
        members.map(|member| member.as_str().unwrap_or("none"))
    });
    let expected = [
        ["get_order", "full", "miss"],
        ["get_order", "full", "hit"],
        ["sales_report", "partial", "none"],
    ];
    assert!(reported.eq(expected), "{calls:?}");
    assert_eq!(calls[0]["arguments"], json!({"order_id": "[redacted]"}));
    let refused: Vec<_> = records(&path, "refused")
        .iter()
        .map(|call| (call["tool"].clone(), call["decision"]["by"].clone()))
        .collect();
    assert_eq!(
        refused,
        [
            (json!("orders__nothing_of_the_kind"), json!("catalogue")),
            (json!("orders__get_order"), json!("check")),
        ]
    );
    let apart = folder.path().join("audit.open-world.jsonl");
    let tools: Vec<_> = records(&apart, "call")
        .iter()
        .map(|call| call["tool"].clone())
        .collect();
    // the second has no hint that asks for a record: it is a write
    assert_eq!(tools, ["add_note", "set_status"]);
    assert!(!std::fs::read_to_string(&apart).unwrap().contains("t0k3n"));
    for log in [&path, &apart] {
        let (code, found) = verified(log).await;
        assert_eq!((code, &found["whole"]), (Some(0), &json!(true)), "{found}");
        assert_eq!(found["closed"], true);
    }

    let shown = path.to_str().unwrap();
    let args = ["--tool", "get_order", "--last", "1", "--json"];
    let output = ends(&[&["audit", "show", shown], &args[..]].concat()).await;
    let one: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!(one["cache"], "hit");

    // an edit that keeps every length
    let edited = std::fs::read_to_string(&path)
        .unwrap()
        .replacen("answered", "cancelled", 1);
    std::fs::write(&path, edited).unwrap();
    let (code, found) = verified(&path).await;
    assert_eq!(code, Some(1));
    assert_eq!(found["fault"]["line"], 3, "{found}");
    let output = ends(&["audit", "verify", shown]).await;
    assert!(text(&output.stdout).contains("NOT WHOLE"), "{output:?}");
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
        // one file, whatever is concluded about the world
        let gateway = Gateway::configured(&format!(
            "[audit]\npath = {path:?}\nopen_world_path = {path:?}\nfsync = \"every_record\"\n\
             {record}\n[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n"
        ))
        .await;
        for (tool, arguments) in [
            ("get_order", json!({"order_id": 1})),
            (write, json!({"order_id": 1, "status": "shipped"})),
            (delete, json!({"order_id": 1})),
        ] {
            let answer = gateway.mcp(&format!("orders__{tool}"), arguments).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        let records = records(&path, "call");
        let found: Vec<_> = records.iter().map(|one| one["tool"].clone()).collect();
        assert_eq!(found, tools, "{record}");
        for one in &records {
            assert_eq!(one["level"], "full", "{one}");
            assert_eq!(one["client"]["name"], "test", "{one}");
            assert_eq!(one["client"]["version"], "1", "{one}");
            let address = one["client"]["address"].as_str().unwrap();
            assert!(address.starts_with("127.0.0.1:"), "{one}");
        }
        let listed: Vec<Value> = gateway.json("/api/tools").await;
        for tool in listed {
            let name = tool["name"].as_str().unwrap();
            if tools.contains(&name.trim_start_matches("orders__")) {
                assert_eq!(tool["recorded"], "full", "{tool}");
            }
        }
    }
}

/// Reads a counter or a gauge of the audit log off the page for Prometheus.
#[cfg(unix)]
async fn counted(gateway: &Gateway, series: &str) -> u64 {
    let (_, page) = gateway.get("/metrics").await;
    let series = format!("callward_audit_{series} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&*series));
    value
        .unwrap_or_else(|| panic!("{series}: {page}"))
        .parse()
        .unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_fails_closed_or_open_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = Gateway::with_small_files(&config(folder.path(), ""), 16).await;
    gateway.call_order(1).await;
    // alone: of those that are written together, one that finds no space leaves out all
    until("the first record", || async {
        (!records(&path, "call").is_empty()).then_some(())
    })
    .await;
    let refusal = until("the full disk", || {
        let answer = gateway.call_order(1);
        async {
            let answer = answer.await;
            let is_answer = answer["result"].is_object();
            (!is_answer).then_some(answer)
        }
    })
    .await;
    let why = refusal["error"]["message"].as_str().unwrap();
    assert!(why.contains("the log cannot be written"), "{refusal}");
    assert_eq!(refusal["error"]["delivery"], "not_sent", "{refusal}");
    assert_eq!(counted(&gateway, "failing").await, 1);
    let refused = counted(&gateway, "refused_calls_total").await;
    assert!(refused >= 1);
    // what needs no full record goes on
    let report = gateway
        .call("orders__sales_report", json!({"region": "north"}))
        .await;
    assert!(report["result"].is_object(), "{report}");
    let again = gateway.call_order(1).await;
    assert!(again["error"].is_object(), "{again}");
    assert_eq!(counted(&gateway, "refused_calls_total").await, refused + 1);
    assert!(!records(&path, "call").is_empty());
    drop(gateway);

    let folder = tempfile::tempdir().unwrap();
    let open = config(folder.path(), "on_failure = \"fail_open\"");
    let gateway = Gateway::with_small_files(&open, 16).await;
    until("the full disk", || async {
        let answer = gateway.call_order(1).await;
        assert!(answer["result"].is_object(), "{answer}");
        (counted(&gateway, "failing").await == 1).then_some(())
    })
    .await;
    for _ in 0..3 {
        let answer = gateway.call_order(1).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(counted(&gateway, "refused_calls_total").await, 0);
    // what waits for the disk to have space is lost with the process, and it says so
    signal("-TERM", gateway.child.id().unwrap()).await;
    let (_, said) = gateway.ended().await;
    assert!(said.contains("audit records are lost"), "{said}");
}

#[tokio::test]
async fn a_file_is_closed_when_it_is_a_second_old_and_the_next_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let gateway = gateway(folder.path(), "max_age = \"1s\"").await;
    let closed = folder.path().join("audit.000001.jsonl");
    until("the next file", || async {
        gateway.call_order(1).await;
        closed.exists().then_some(())
    })
    .await;
    gateway.call_order(1).await;
    gateway.stopped().await;
    let kept = records(&closed, "call").len() + records(&path, "call").len();
    let (code, found) = verified(&path).await;
    assert_eq!((code, &found["whole"]), (Some(0), &json!(true)), "{found}");
    assert!(kept > 1 && found["files"].as_u64() >= Some(2), "{found}");
}

#[tokio::test]
async fn a_locked_log_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let running = gateway(folder.path(), "").await;
    let done = ends(&["serve", "--http", "0", "--config", running.config()]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains("another process writes this log"), "{said}");
}
