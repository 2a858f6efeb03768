//! Servers that ask the client of a call: by requests, or by results that want input.

use callward_core::{CallClient, ClientCapabilities, ErrorKind, OutputStatus};
use callward_mcp::client::{OnlyClient, UpstreamOptions};
use callward_testkit::MockClient;
use serde_json::{Value, json};
use tokio::sync::watch::channel;

use crate::instances::{call, caller};
use crate::script::{
    DISCOVERED, INITIALIZED, LONG, Peer, RESULT, Script, calling, greeted_with, scripted,
};

const ASKED: &str = r#"{"mode":"form","message":"who?","requestedSchema":{"type":"object"}}"#;

fn asking(session: &str) -> (std::sync::Arc<MockClient>, callward_core::ToolCall) {
    MockClient::make(call(&caller("ada", session), false))
}

/// Accepts the instance of a client, which learns what the client declares.
async fn instance(script: &mut Script) -> Peer {
    let mut peer = script.accept().await;
    let hello = peer.asked("initialize").await;
    let declared = &hello.value()["capabilities"];
    assert_eq!(*declared, json!({"elicitation": {"form": {}}}));
    peer.reply(&hello, INITIALIZED).await;
    peer.notified("notifications/initialized").await;
    peer
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#)
}

async fn answer_of(peer: &mut Peer) -> Value {
    serde_json::from_str(&peer.next_line().await.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_asks_the_client_of_its_call() {
    let (upstream, _lead, mut script) = greeted_with(INITIALIZED, 1 << 16, |_| {}).await;
    let (client, call) = asking("s");
    let running = calling(&upstream, call);
    let mut peer = instance(&mut script).await;
    let asked = peer.asked("tools/call").await;
    for (id, method, params, outcome) in [
        ("1", "elicitation/create", ASKED, json!({"result": {}})),
        (
            "2",
            "elicitation/create",
            r#"{"mode":"url"}"#,
            json!({"error": -32601}),
        ),
        (
            "3",
            "sampling/createMessage",
            "{}",
            json!({"error": -32601}),
        ),
        ("4", "made/up", "{}", json!({"error": -32601})),
    ] {
        peer.line(&request(id, method, params)).await;
        let mut answer = answer_of(&mut peer).await;
        if let Some(code) = answer.pointer("/error/code").cloned() {
            answer["error"] = code;
        }
        let (name, value) = outcome.as_object().unwrap().iter().next().unwrap();
        assert_eq!(
            (&answer["id"], &answer[name]),
            (&json!(id), value),
            "{method}"
        );
    }
    peer.line(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}"#)
        .await;
    peer.reply(&asked, RESULT).await;
    running.await.unwrap().unwrap();
    assert_eq!(client.questions(), [ASKED, r#"{"data":"x"}"#]);
    // between calls the owner's client is meant
    peer.line(&request("5", "elicitation/create", "{}")).await;
    assert_eq!(answer_of(&mut peer).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_clients_share_asks_none_of_them() {
    let (upstream, mut peer, _script) = greeted_with(INITIALIZED, 1 << 16, |_| {}).await;
    let (client, call) = MockClient::make(crate::script::call("x", "{}"));
    let running = calling(&upstream, call);
    let asked = peer.asked("tools/call").await;
    peer.line(&request("1", "elicitation/create", "{}")).await;
    assert_eq!(answer_of(&mut peer).await["error"]["code"], -32601);
    peer.reply(&asked, RESULT).await;
    running.await.unwrap().unwrap();
    assert!(client.questions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_only_client_is_asked_between_calls_though_it_has_no_instance() {
    let client = std::sync::Arc::new(MockClient::default());
    let declared = br#"{"elicitation":{},"roots":{"listChanged":true},
        "extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let asked = CallClient::new(client.clone(), false);
    let only = OnlyClient::new(ClientCapabilities::parse(declared), Some(asked));
    assert!(!only.capabilities.take_tasks());
    let set = |options: &mut UpstreamOptions| options.only_client = Some(channel(Some(only)).1);
    let (upstream, mut peer, _script) = greeted_with(INITIALIZED, 1 << 16, set).await;
    peer.line(&request("1", "elicitation/create", ASKED)).await;
    assert_eq!(answer_of(&mut peer).await["result"], json!({}));
    assert_eq!(client.questions(), [ASKED]);
    upstream.roots_changed(&caller("ada", "s"));
    peer.notified("notifications/roots/list_changed").await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_the_answers_of_a_legacy_client_in_rounds() {
    let (upstream, mut peer, _script) = greeted_with(DISCOVERED, 1 << 16, |_| {}).await;
    let (client, call) = MockClient::make(crate::script::call("x", r#"{"a":1}"#));
    let running = calling(&upstream, call);
    let required = format!(
        r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"who":{{"method":"elicitation/create","params":{ASKED}}}}}}}"#
    );
    let first = peer.asked("tools/call").await;
    let meta = &first.value()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*meta, json!({"elicitation": {"form": {}}}));
    peer.reply(&first, &required).await;
    let second = peer.asked("tools/call").await.value();
    assert_eq!(second["inputResponses"], json!({"who": {}}));
    assert_eq!(
        (&second["requestState"], &second["arguments"]),
        (&json!("s"), &json!({"a": 1}))
    );
    assert_eq!(client.questions(), [ASKED]);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_modern_server_may_not_ask_fails_the_call() {
    let sampling = r#"{"a":{"method":"sampling/createMessage","params":{}}}"#;
    let elicitation = r#"{"a":{"method":"elicitation/create","params":{}}}"#;
    for (takes_rounds, questions, rounds, outcome) in [
        (false, sampling, 1, Err("did not declare")),
        (true, sampling, 1, Err("did not declare")),
        (true, elicitation, 1, Ok(OutputStatus::InputRequired)),
        (false, elicitation, 11, Err("10 rounds")),
        (false, "[]", 1, Err("cannot be read")),
        (false, r#"{},"requestState":5"#, 1, Err("not a string")),
    ] {
        let (upstream, mut peer, _script) = greeted_with(DISCOVERED, 1 << 16, |_| {}).await;
        let (_client, call) = MockClient::make_with(crate::script::call("x", "{}"), takes_rounds);
        let running = calling(&upstream, call);
        for _ in 0..rounds {
            let asked = peer.asked("tools/call").await;
            let required =
                format!(r#"{{"resultType":"input_required","inputRequests":{questions}}}"#);
            peer.reply(&asked, &required).await;
        }
        match (running.await.unwrap(), outcome) {
            (Ok(output), Ok(status)) => assert_eq!(output.status(), status),
            (Err(error), Err(words)) => {
                let kind = match words {
                    "did not declare" => ErrorKind::InvalidCall,
                    _ => ErrorKind::Protocol,
                };
                assert_eq!(error.kind, kind, "{error}");
                assert!(error.message.contains(words), "{error}");
            }
            (other, _) => panic!("{questions}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_on_initialize_is_sent_a_discovery_next() {
    let (upstream, mut script) = scripted(1 << 16, |_| {});
    let mut peer = script.accept().await;
    peer.refuse_initialize().await;
    drop(peer);
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    peer.reply(&probe, DISCOVERED).await;
    upstream.ready(LONG).await.unwrap();
}
