//! Idempotency keys on their way to servers.

use std::sync::Arc;

use callward_core::{Caller, IdempotencyKey, Principal, ToolCall};
use callward_mcp::client::Upstream;
use serde_json::{Value, json};

use crate::script::{DISCOVERED, INITIALIZED, LONG, Peer, Script, call, calling, greeted_with};
use crate::script_http::Server;

const NAME: &str = "io.callward/idempotencyKey";

fn declared(greeting: &str) -> String {
    greeting.replace(
        r#""capabilities":{"#,
        r#""capabilities":{"experimental":{"io.callward/idempotency":{}},"#,
    )
}

async fn greeted(greeting: &str, keys: Option<bool>) -> (Upstream, Peer, Script) {
    greeted_with(greeting, 1 << 16, |options| options.idempotency_keys = keys).await
}

async fn key(upstream: &Upstream, peer: &mut Peer, call: &ToolCall) -> Value {
    let asked = peer.serve(upstream, call.clone()).await;
    asked.value()["_meta"][NAME].clone()
}

#[tokio::test(start_paused = true)]
async fn a_server_gets_keys_if_it_says_so_or_the_operator_does() {
    for greeting in [INITIALIZED, DISCOVERED] {
        for (greeting, said, expected) in [
            (greeting.to_owned(), None, false),
            (greeting.to_owned(), Some(true), true),
            (declared(greeting), None, true),
            (declared(greeting), Some(false), false),
        ] {
            let (upstream, mut peer, _script) = greeted(&greeting, said).await;
            let takes = upstream.server_info().unwrap().takes_idempotency_keys;
            assert_eq!(takes, greeting.contains("io.callward"));
            let key = key(&upstream, &mut peer, &call("x", "{}")).await;
            assert_eq!(key.is_string(), expected, "{greeting} {said:?}: {key}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_of_a_caller_s_own_is_bound_to_the_caller() {
    let (upstream, mut peer, _script) = greeted(&declared(INITIALIZED), None).await;
    let given = |principal: Option<&str>, key: &str| {
        let call = call("x", "{}").with_idempotency_key(IdempotencyKey::new(key).unwrap());
        match principal {
            Some(name) => call.with_caller(Arc::new(Caller::new(Principal::new(name)))),
            None => call,
        }
    };
    let mut seen = Vec::new();
    for (principal, text) in [
        (None, "order-1"),
        (Some("ada"), "order-1"),
        (Some("eve"), "order-1"),
        (Some("ada"), "order-2"),
        (Some("adaorder"), "-1"),
    ] {
        let sent = key(&upstream, &mut peer, &given(principal, text)).await;
        assert!(!seen.contains(&sent), "{principal:?} {text}: {sent}");
        if principal.is_none() {
            assert_eq!(sent, text, "ours alone");
        } else {
            let sent = sent.as_str().unwrap();
            assert!(!sent.contains("ada") && sent.len() == 36, "{sent}");
        }
        let again = key(&upstream, &mut peer, &given(principal, text)).await;
        assert_eq!(again, sent, "the same call, whenever it comes");
        seen.push(sent);
    }
    // the same in every process and every version: a change of this sends calls twice
    assert_eq!(seen[1], "e6544ca6-f620-5cb1-94e2-551b489cbef8");
}

#[tokio::test]
async fn over_http_the_key_is_in_a_header_too_and_survives_a_lost_session() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| options.idempotency_keys = Some(true));
    server.greet_legacy("one").await;
    upstream.ready(LONG).await.unwrap();
    let mut repeated = call("x", "{}");
    repeated.ensure_idempotency_key();
    let running = calling(&upstream, repeated.clone());
    let first = server.asked("tools/call").await;
    let key = first.json()["params"]["_meta"][NAME].clone();
    assert_eq!(json!(first.headers["idempotency-key"]), key);
    first.answer(404, "", "").await;
    running.await.unwrap().unwrap_err();
    let running = calling(&upstream, repeated);
    let hello = server.initialize("two").await;
    // only calls have one
    assert!(!hello.contains_key("idempotency-key"));
    let second = server.answer(running).await;
    assert_eq!(second.json()["params"]["_meta"][NAME], key);
    assert_eq!(json!(second.headers["idempotency-key"]), key);
}
