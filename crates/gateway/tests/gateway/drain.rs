//! Signals: calls in flight end, within the limit, and servers in good order.

use callward::ToolDefinition;
use callward_chaos::Ledger;
use callward_testkit::hostile::{
    Era,
    peer::{Peer, Reply, Then},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::audit::records;
use crate::scripted::{Script, tool};
use crate::support::{CALLWARD, Gateway, Legacy, Pipe, answer_of, ends, http, result, sample};
use crate::support::{signal, until, within};

/// A gateway with this `drain`, in the middle of a call that takes so long.
async fn with_a_slow_call(drain: &str, delay_ms: u32) -> (Gateway, JoinHandle<(u16, String)>) {
    let config = format!("[http]\ndrain = {drain:?}\n{}", sample("orders"));
    let gateway = Gateway::configured(&config).await;
    let report = json!({"region": "x", "delay_ms": delay_ms});
    let slow = gateway.begin("orders__sales_report", &report);
    gateway.running("orders", 1).await;
    (gateway, slow)
}

#[tokio::test]
async fn ctrl_c_lets_a_call_in_flight_end() {
    let (gateway, slow) = with_a_slow_call("10s", 3_000).await;
    gateway.signal("-INT").await;
    let (_, answer) = within("the answer", slow).await.unwrap();
    let answer = answer_of(&answer);
    assert_eq!(result(&answer)["structuredContent"]["region"], "x");
    let (well, said) = gateway.ended().await;
    assert!(well, "{said}");
    let expected = "1 call in flight, at most 10s more";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("no call was cut off"), "{said}");
}

#[tokio::test]
async fn while_calls_end_new_ones_are_refused_and_sessions_go_on() {
    let config = format!("[http]\ndrain = \"10m\"\n{}", sample("orders"));
    let mut gateway = Gateway::configured(&(config + "instances = \"shared\"\n")).await;
    let (url, ready) = (gateway.url.clone(), gateway.public("/readyz"));
    let session = Legacy::open(&url).await;
    let other = Legacy::open(&url).await;
    let report = json!({"region": "x", "delay_ms": 600_000});
    let report = json!({"name": "orders__sales_report", "arguments": report});
    let draining = async {
        gateway.running("orders", 1).await;
        gateway.signal("-TERM").await;
        gateway.says("1 call in flight").await;
        let new = other.post("tools/call", Some(1), report.clone()).await;
        let read = json!({"uri": "doc:1"});
        let read = other.post("resources/read", Some(2), read).await;
        let opened = Legacy::with(&url, Vec::new()).await;
        for refused in [new, read, opened.err().unwrap()] {
            assert_eq!(refused.status(), 503);
            assert_eq!(refused.headers()["retry-after"], "1");
            let answer = answer_of(&refused.text().await.unwrap());
            assert_eq!(answer["error"]["data"]["delivery"], "not_sent", "{answer}");
        }
        let operator = gateway.call("orders__get_order", json!({"order_id": 1}));
        assert_eq!(operator.await["kind"], "overloaded");
        assert_eq!(gateway.get_url(&ready).await.0, 503);
        let stream = session.request(Method::GET);
        let stream = within(
            "a stream",
            stream.header("accept", "text/event-stream").send(),
        );
        assert_eq!(stream.await.unwrap().status(), 200);
        other.end().await;
        let cancel = session.post("notifications/cancelled", None, json!({"requestId": 1}));
        assert_eq!(cancel.await.status(), 202);
    };
    let (answer, ()) = tokio::join!(
        session.post("tools/call", Some(1), report.clone()),
        draining
    );
    let answer = answer_of(&answer.text().await.unwrap());
    assert_eq!(answer["error"]["data"]["kind"], "cancelled", "{answer}");
    let (well, said) = gateway.ended().await;
    assert!(well && said.contains("no call was cut off"), "{said}");
}

#[tokio::test]
async fn calls_that_are_cut_off_are_answered_and_recorded() {
    let tool = ToolDefinition::from_json(tool("pay", false).to_string()).unwrap();
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
        let calls = async {
            let pay = |call| gateway.mcp("bank__pay", json!({"call": call}));
            tokio::join!(pay(1), pay(2), pay(3))
        };
        let stop = async {
            until("the calls run", || async {
                (1..=3).all(|call| ledger.of(call).seen == 1).then_some(())
            })
            .await;
            gateway.signal("-TERM").await;
        };
        let (answers, ()) = tokio::join!(calls, stop);
        for answer in [answers.0, answers.1, answers.2] {
            let kind = &answer["error"]["data"]["kind"];
            assert_eq!(kind, "outcome_unknown", "{answer}");
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
    let (mut gateway, slow) = with_a_slow_call("10m", 60_000).await;
    gateway.signal("-INT").await;
    gateway.says("1 call in flight").await;
    gateway.signal("-INT").await;
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
    let args = format!("['-c', '{LEAVES_WORD}', 'CALLWARD', '{path}']");
    let server = format!("[servers.orders]\ncommand = \"sh\"\nargs = {args}\n");
    let legacy = Script::of_one("get_city").server("world");
    let gateway = Gateway::configured(&(server + &legacy)).await;
    for tool in ["orders__get_order", "world__get_city"] {
        result(&gateway.mcp(tool, json!({"order_id": 1})).await);
    }
    let said = gateway.stopped().await;
    assert!(left(&path), "serve: {said}");
    // a clean stop of stdio servers logs no warning
    assert!(!said.contains(" WARN "), "{said}");
}

#[tokio::test]
async fn a_standard_error_that_is_not_read_stops_nothing() {
    let mut gateway = Gateway::configured(&sample("orders")).await;
    // each refusal is a line: many times what a pipe holds
    for _ in 0..2_000 {
        let request = http().get(gateway.public("/mcp"));
        let refused = request.header("host", "elsewhere.example").send();
        let refused = within("a refusal", refused).await.unwrap();
        assert_eq!(refused.status(), 403);
    }
    gateway.signal("-TERM").await;
    let ended = within("the end", gateway.child.wait()).await;
    assert!(ended.unwrap().success());
}

#[tokio::test]
async fn sighup_changes_nothing() {
    let mut gateway = Gateway::sample().await;
    gateway.signal("-HUP").await;
    gateway.says("SIGHUP is ignored").await;
    result(&gateway.order(1).await);
    gateway.stopped().await;

    let mut pipe = Pipe::open(&["run", "--", CALLWARD, "sample"]).await;
    signal("-HUP", pipe.child.id().unwrap()).await;
    result(&pipe.call("get_order", json!({"order_id": 1})).await);
    assert!(pipe.close().await);
}

#[tokio::test]
async fn a_lame_duck_is_not_ready_and_serves_until_its_time_is_over() {
    let config = format!("[http]\nlame_duck = \"10m\"\n{}", sample("shop"));
    let gateway = Gateway::configured(&config).await;
    gateway.signal("-TERM").await;
    let body = until("the lame duck", || async {
        let (status, body) = gateway.get_url(&gateway.public("/readyz")).await;
        (status == 503).then_some(body)
    })
    .await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["reason"], "the gateway is stopping", "{body}");
    assert_eq!(gateway.get_url(&gateway.public("/healthz")).await.0, 200);
    result(&gateway.mcp("shop__get_order", json!({"order_id": 1})).await);
    // a second signal does not wait for it
    let said = gateway.stopped().await;
    assert!(said.contains("calls are accepted for 10m"), "{said}");

    let gateway = Gateway::configured(&config.replace("10m", "50ms")).await;
    let said = gateway.stopped().await;
    assert!(said.contains("stopped: no call was cut off"), "{said}");
}
