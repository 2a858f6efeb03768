//! Which era is spoken over a pipe, and signs of life in both eras.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolError, ToolServer};
use callward_mcp::client::{EraChoice, Upstream, UpstreamOptions};
use callward_mcp::wire::Era;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::script::{DISCOVERED, INITIALIZED, LEGACY, LONG, assert_fails, call, calling};
use crate::script::{greeted_with, scripted};
use crate::script_http::{legacy as legacy_http, modern as modern_http};

#[tokio::test(start_paused = true)]
async fn a_discovery_makes_a_server_modern_and_each_request_says_who_asks() {
    let (upstream, mut script) = scripted(1 << 16, |_| {});
    let mut peer = script.accept().await;
    peer.refuse_initialize().await;
    let probe = peer.asked("server/discover").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "callward", "version": env!("CARGO_PKG_VERSION")},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(probe.value()["_meta"], meta);
    peer.reply(&probe, DISCOVERED).await;
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
    let asked = peer.serve(&upstream, call("x", "{}")).await;
    assert_eq!(asked.value()["_meta"], meta);
}

/// What a server does after it was sent `initialize`, and which era that shows.
const GREETINGS: [(&str, Era); 11] = [
    // one that speaks both eras, too: it keeps the state of its session
    ("accept", Era::Legacy),
    ("refuse=-32601 discovered", Era::Modern),
    ("refuse=-32602 discovered", Era::Modern),
    ("refuse=-32600 discovered", Era::Modern),
    ("refuse=-32022 discovered", Era::Modern),
    // silence
    ("probe discovered", Era::Modern),
    // it starts slowly
    ("probe wait accept", Era::Legacy),
    ("probe wait refuse=-32601 discovered", Era::Modern),
    ("probe refuse-probe wait accept", Era::Legacy),
    ("die accept", Era::Legacy),
    // once known, it is asked in its era
    (
        "refuse=-32601 discovered lose probe discovered",
        Era::Modern,
    ),
];

#[tokio::test(start_paused = true)]
async fn what_follows_the_greeting_shows_the_era() {
    for (steps, era) in GREETINGS {
        let (upstream, mut script) = scripted(1 << 16, |_| {});
        let mut peer = script.accept().await;
        let mut hello = peer.asked("initialize").await;
        let mut probe = None;
        for step in steps.split(' ') {
            match step.split_once('=').unwrap_or((step, "")) {
                ("accept", _) => {
                    peer.reply(&hello, INITIALIZED).await;
                    peer.notified("notifications/initialized").await;
                }
                ("refuse", code) => peer.refuse(&hello, code.parse().unwrap()).await,
                ("probe", _) => probe = Some(peer.asked("server/discover").await),
                ("refuse-probe", _) => peer.refuse(probe.as_ref().unwrap(), -32601).await,
                ("discovered", _) => {
                    let probe = match probe.take() {
                        Some(probe) => probe,
                        None => peer.asked("server/discover").await,
                    };
                    peer.reply(&probe, DISCOVERED).await;
                }
                ("wait", _) => tokio::time::sleep(Duration::from_secs(280)).await,
                ("die", _) => {
                    drop(peer);
                    peer = script.accept().await;
                    hello = peer.asked("initialize").await;
                }
                ("lose", _) => {
                    upstream.ready(LONG).await.unwrap();
                    drop(peer);
                    peer = script.accept().await;
                }
                other => panic!("{other:?}"),
            }
        }
        upstream.ready(LONG).await.unwrap();
        let info = upstream.server_info().unwrap();
        assert_eq!(info.era, era, "{steps}");
        if era == Era::Legacy {
            assert_eq!(info.version, "2025-11-25");
            let asked = peer.serve(&upstream, call("x", "{}")).await;
            assert_eq!(asked.params, r#"{"name":"x","arguments":{}}"#, "no `_meta`");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_era_is_not_asked_for() {
    let (_upstream, mut script) = scripted(1 << 16, LEGACY);
    script.accept().await.initialize().await;

    let set = |options: &mut UpstreamOptions| options.era = EraChoice::Modern;
    let (upstream, mut script) = scripted(1 << 16, set);
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    peer.refuse(&probe, -32601).await;
    let error = upstream.ready(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.message.contains("era is set to modern"), "{error}");
}

fn ping(upstream: &Upstream) -> JoinHandle<Result<(), ToolError>> {
    let upstream = upstream.clone();
    tokio::spawn(async move { upstream.ping().await })
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_sent_ping_and_a_modern_one_discover() {
    for (greeting, method, answer) in [
        (INITIALIZED, "ping", "{}"),
        (DISCOVERED, "server/discover", DISCOVERED),
    ] {
        let (upstream, mut peer, script) = greeted_with(greeting, 1 << 16, |_| {}).await;
        // a server that refuses the question is there to refuse it
        for code in [0, -32601, -32603] {
            let pinging = ping(&upstream);
            let asked = peer.asked(method).await;
            match code {
                0 => peer.reply(&asked, answer).await,
                code => peer.refuse(&asked, code).await,
            }
            pinging.await.unwrap().unwrap();
        }
        let pinging = ping(&upstream);
        peer.message().await.unwrap(); // and dies of it
        drop(peer);
        let error = pinging.await.unwrap().unwrap_err();
        assert_fails(&error, ErrorKind::ConnectionLost, Delivery::Unknown);
        // nor does one that is not even started again
        drop(script);
        tokio::time::sleep(LONG).await;
        let error = upstream.ping().await.unwrap_err();
        assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    }
}

#[tokio::test]
async fn over_http_too() {
    for (modern, method) in [(true, "server/discover"), (false, "ping")] {
        let (upstream, mut server) = match modern {
            true => modern_http().await,
            false => legacy_http("s-1").await,
        };
        let pinging = ping(&upstream);
        server.asked(method).await.result(DISCOVERED).await;
        pinging.await.unwrap().unwrap();

        // what stands before a server that is gone answers, too
        let pinging = ping(&upstream);
        server.asked(method).await.answer(503, "", "none").await;
        let error = pinging.await.unwrap().unwrap_err();
        assert_fails(&error, ErrorKind::ServerFault, Delivery::Answered);
        assert!(error.kind.blames_server());

        server.stop().await;
        let error = upstream.ping().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ConnectFailed, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_modern_any_more_is_greeted_again() {
    for status in [400, 404] {
        let (upstream, mut server) = modern_http().await;
        let pinging = ping(&upstream);
        let asked = server.asked("server/discover").await;
        asked.answer(status, "", "Bad Request: no session").await;
        let _ = pinging.await.unwrap();
        let calling = calling(&upstream, call("x", "{}"));
        server.greet_legacy("one").await;
        let asked = server.answer(calling).await;
        assert_eq!(asked.headers["mcp-session-id"], "one");
    }
}
