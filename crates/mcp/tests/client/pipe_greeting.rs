//! Which era is spoken over a pipe.

use std::time::Duration;

use callward_mcp::client::{EraChoice, UpstreamOptions};
use callward_mcp::wire::Era;
use serde_json::json;

use crate::script::{DISCOVERED, INITIALIZED, LEGACY, LONG, call, scripted};

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
    assert!(error.message().contains("era is set to modern"), "{error}");
}
