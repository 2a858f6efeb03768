//! A server that dies under load: its own calls fail clearly, it comes back, the others go on.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Gateway, signal, until, within};

const TWO: &str = "\
[servers.doomed]
command = \"CALLWARD\"
args = [\"sample\"]

[servers.other]
command = \"CALLWARD\"
args = [\"sample\"]
";

/// The process behind the doomed server.
async fn pid(gateway: &Gateway) -> u32 {
    let stats = gateway.stats("doomed__orders_stats", "before").await;
    u32::try_from(stats["pid"].as_u64().unwrap()).unwrap()
}

/// Waits until the doomed server answers again, and returns its counters.
async fn back(gateway: &Gateway) -> Value {
    let mut asked = 0;
    until("the server is back", || {
        asked += 1;
        let ask = format!("back {asked}");
        async move {
            let stats = gateway.stats("doomed__orders_stats", &ask).await;
            stats["pid"].is_number().then_some(stats)
        }
    })
    .await
}

/// Builds eight different reports at once.
async fn reports(gateway: &Gateway, tool: &str, delay_ms: u32) -> Vec<Value> {
    let one = |n: usize| {
        gateway.call(
            tool,
            json!({"region": format!("r{n}"), "delay_ms": delay_ms}),
        )
    };
    join_all((0..8).map(one)).await
}

#[tokio::test]
async fn a_killed_child_fails_only_its_own_calls_and_comes_back() {
    // without repeats, so that each call tells the outcome of its one attempt
    let gateway = Gateway::configured(&format!("[retry]\nmax_attempts = 1\n{TWO}")).await;
    let old = pid(&gateway).await;
    let kill = async {
        gateway.running("doomed", 8).await;
        signal("-KILL", old).await;
    };
    let all = async {
        tokio::join!(
            reports(&gateway, "doomed__sales_report", 60_000),
            reports(&gateway, "other__sales_report", 3_000),
            kill
        )
    };
    let (doomed, others, ()) = within("every call's end", all).await;
    for answer in &doomed {
        assert_eq!(answer["error"]["kind"], "connection_lost", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("server doomed"), "{message}");
        assert!(message.contains("SIGKILL"), "{message}");
    }
    for answer in &others {
        assert!(
            answer["result"]["structuredContent"]["region"].is_string(),
            "{answer}"
        );
    }

    let stats = back(&gateway).await;
    assert_ne!(stats["pid"], old);
    let answer = gateway
        .call("doomed__get_order", json!({"order_id": 1}))
        .await;
    assert_eq!(
        answer["result"]["structuredContent"]["status"], "paid",
        "{answer}"
    );
}

#[tokio::test]
async fn a_write_cut_off_by_a_crash_says_that_nobody_knows_and_runs_once() {
    // the report as a write: what is sent and lost is then not repeated
    let write = "readOnlyHint = false\ndestructiveHint = false\nidempotentHint = false\n";
    let config = format!("{TWO}\n[servers.doomed.tools.sales_report]\n{write}");
    let gateway = Gateway::configured(&config).await;
    let old = pid(&gateway).await;
    let write = gateway.call(
        "doomed__sales_report",
        json!({"region": "x", "delay_ms": 60_000}),
    );
    let kill = async {
        gateway.running("doomed", 1).await;
        signal("-KILL", old).await;
    };
    let (answer, ()) = within("the failure", async { tokio::join!(write, kill) }).await;
    assert_eq!(answer["error"]["kind"], "outcome_unknown", "{answer}");
    assert_eq!(answer["error"]["delivery"], "unknown", "{answer}");
    assert_eq!(answer["attempts"], 1, "{answer}");
    let stats = back(&gateway).await;
    assert_eq!(stats["tools"]["sales_report"], Value::Null, "{stats}");
}
