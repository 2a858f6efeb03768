//! Ctrl-C and SIGTERM: calls in flight end, within the limit.

use callward::ToolDefinition;
use callward_chaos::Ledger;
use callward_testkit::hostile::{
    Era,
    peer::{Peer, Reply, Then},
};
use reqwest::Response;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::audit::records;
use crate::scripted::Script;
use crate::support::{CALLWARD, Gateway, Pipe, ends, http, signal, until, within};

/// A gateway with this `drain`, in the middle of a call of a minute.
async fn with_a_slow_call(drain: &str) -> (Gateway, JoinHandle<reqwest::Result<Response>>) {
    let sample = "[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n";
    let gateway = Gateway::configured(&format!("[http]\ndrain = {drain:?}\n{sample}")).await;
    let arguments = json!({"region": "x", "delay_ms": 60_000});
    let slow = gateway
        .mcp_request("orders__sales_report", &arguments)
        .send();
    let slow = tokio::spawn(slow);
    gateway.running("orders", 1).await;
    (gateway, slow)
}

#[tokio::test]
async fn ctrl_c_lets_a_call_in_flight_end() {
    let gateway = Gateway::sample().await;
    let slow = gateway.mcp(
        "orders__sales_report",
        json!({"region": "x", "delay_ms": 3_000}),
    );
    let stop = async {
        gateway.running("orders", 1).await;
        signal("-INT", gateway.child.id().unwrap()).await;
    };
    let (answer, ()) = tokio::join!(slow, stop);
    assert_eq!(
        answer["result"]["structuredContent"]["region"], "x",
        "{answer}"
    );
    let (well, said) = gateway.ended().await;
    assert!(well, "{said}");
    assert!(
        said.contains("1 call in flight, at most 10s more"),
        "{said}"
    );
    assert!(said.contains("no call was cut off"), "{said}");
    // and before that: what is served, and what to try
    assert!(said.contains("serving the embedded sample"), "{said}");
    assert!(
        said.contains("try:  callward call orders__get_order"),
        "{said}"
    );
}

#[tokio::test]
async fn what_outlasts_the_limit_is_cut_off_and_counted() {
    let (gateway, slow) = with_a_slow_call("50ms").await;
    signal("-TERM", gateway.child.id().unwrap()).await;
    let (well, said) = gateway.ended().await;
    assert!(well, "{said}");
    assert!(said.contains("stopped: 1 call cut off"), "{said}");
    let answer = slow.await.unwrap();
    // the answer may have begun before the call ended, but it never came to its end
    if let Ok(answer) = answer {
        let body = answer.text().await;
        assert!(body.is_err() || !body.unwrap().contains("\"region\""));
    }
}

#[tokio::test]
async fn calls_that_are_cut_off_are_answered_and_recorded() {
    let tool = json!({"name": "pay", "inputSchema": {"type": "object"}});
    let tool = ToolDefinition::from_json(tool.to_string()).unwrap();
    for era in [Era::Legacy, Era::Modern] {
        let (folder, ledger) = (tempfile::tempdir().unwrap(), Ledger::new());
        let peer = Peer::start(era, std::slice::from_ref(&tool), ledger.clone());
        let peer = peer.await.unwrap();
        peer.plays(|_| Reply::bytes("").then(Then::Hold));
        let path = folder.path().join("audit.jsonl");
        let gateway = Gateway::configured(&format!(
            "[http]\ndrain = \"50ms\"\n[audit]\npath = {path:?}\nopen_world_path = {path:?}\n\
             [servers.bank]\nurl = {:?}\n",
            peer.url()
        ))
        .await;
        let pid = gateway.child.id().unwrap();
        let calls = async {
            let pay = |call| gateway.mcp("bank__pay", json!({"call": call}));
            tokio::join!(pay(1), pay(2), pay(3))
        };
        let stop = async {
            until("the calls run", || async {
                (1..=3).all(|call| ledger.of(call).seen == 1).then_some(())
            })
            .await;
            signal("-TERM", pid).await;
        };
        let (answers, ()) = tokio::join!(calls, stop);
        for answer in [answers.0, answers.1, answers.2] {
            assert_eq!(
                answer["error"]["data"]["kind"], "outcome_unknown",
                "{answer}"
            );
        }
        let (well, said) = gateway.ended().await;
        assert!(well, "{said}");
        assert!(said.contains("stopped: 3 calls cut off"), "{said}");
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!(records(&path, "call").len(), 3, "{log}");
    }
}

#[tokio::test]
async fn a_second_signal_waits_for_nothing() {
    let (mut gateway, slow) = with_a_slow_call("10m").await;
    let pid = gateway.child.id().unwrap();
    signal("-INT", pid).await;
    gateway.says("1 call in flight").await;
    signal("-INT", pid).await;
    let (_, said) = gateway.ended().await;
    assert!(said.contains("stopped: 1 call cut off"), "{said}");
    slow.abort();
}

/// A server that leaves word when it has ended by itself: one that is killed does not.
const LEAVES_WORD: &str = "\"$0\" sample; echo ended > \"$1\"";

#[tokio::test]
async fn servers_may_end_in_good_order_when_the_gateway_does() {
    let place = tempfile::tempdir().unwrap();
    let word = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let left = |path: &str| std::fs::read_to_string(path).unwrap_or_default() == "ended\n";

    let path = word("run");
    let command = ["--", "sh", "-c", LEAVES_WORD, CALLWARD, &path];
    let wrapped = Pipe::open(&[&["run"], &command[..]].concat()).await;
    assert!(wrapped.close().await);
    assert!(left(&path), "run");

    let path = word("call");
    let command = ["--", "sh", "-c", LEAVES_WORD, CALLWARD, &path];
    let call = ends(&[&["call", "get_order", "{\"order_id\":1}"], &command[..]].concat()).await;
    assert!(call.status.success(), "{call:?}");
    assert!(left(&path), "call");

    let path = word("serve");
    let gateway = Gateway::configured(&format!(
        "[servers.orders]\ncommand = \"sh\"\nargs = ['-c', '{LEAVES_WORD}', 'CALLWARD', '{path}']\n",
    ))
    .await;
    signal("-TERM", gateway.child.id().unwrap()).await;
    let (well, said) = gateway.ended().await;
    assert!(well, "{said}");
    assert!(left(&path), "serve: {said}");
}

#[tokio::test]
async fn a_clean_stop_of_stdio_servers_logs_no_warning() {
    let orders = "command = \"CALLWARD\"\nargs = [\"sample\"]\n";
    let legacy = Script::of_one("get_city");
    let config = format!("[servers.orders]\n{orders}{}", legacy.server("world"));
    let gateway = Gateway::configured(&config).await;
    for tool in ["orders__get_order", "world__get_city"] {
        let answer = gateway.mcp(tool, json!({"order_id": 1})).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let said = gateway.stopped().await;
    assert!(!said.contains(" WARN "), "{said}");
}

#[tokio::test]
async fn a_standard_error_that_is_not_read_stops_nothing() {
    let mut gateway =
        Gateway::configured("[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n")
            .await;
    let lines = gateway.child.stderr.take();
    // each refusal is a line: many times what a pipe holds
    for _ in 0..2_000 {
        let request = http()
            .get(gateway.public("/mcp"))
            .header("host", "elsewhere.example");
        assert_eq!(
            within("a refusal", request.send()).await.unwrap().status(),
            403
        );
    }
    signal("-TERM", gateway.child.id().unwrap()).await;
    assert!(
        within("the end", gateway.child.wait())
            .await
            .unwrap()
            .success()
    );
    drop(lines);
}
