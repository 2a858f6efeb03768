//! Which era is spoken over a pipe.

use std::time::Duration;

use callward_mcp::client::{EraChoice, UpstreamOptions};
use callward_mcp::wire::Era;
use serde_json::json;

use crate::script::{DISCOVERED, LEGACY, LONG, call, scripted};

#[tokio::test(start_paused = true)]
async fn a_discovery_makes_a_server_modern_and_each_request_says_who_asks() {
    let (upstream, mut script) = scripted(1 << 16, |_| {});
    let mut peer = script.accept().await;
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

/// What a server does after it was sent the probe, and which era that shows.
const GREETINGS: [(&str, Era); 10] = [
    ("refuse=-32601 initialize", Era::Legacy),
    ("refuse=-32602 initialize", Era::Legacy),
    ("refuse=-32600 initialize", Era::Legacy),
    ("refuse=-32603 initialize", Era::Legacy),
    ("refuse=-32000 initialize", Era::Legacy),
    // silence
    ("initialize", Era::Legacy),
    // it starts slowly
    ("hello answer refuse-hello", Era::Modern),
    ("wait hello answer", Era::Modern),
    // it dies of the probe
    ("die initialize", Era::Legacy),
    // once known, it is not probed again
    ("refuse=-32601 initialize die initialize", Era::Legacy),
];

#[tokio::test(start_paused = true)]
async fn what_follows_the_probe_shows_the_era() {
    for (steps, era) in GREETINGS {
        let (upstream, mut script) = scripted(1 << 16, |_| {});
        let mut peer = script.accept().await;
        let probe = peer.asked("server/discover").await;
        let mut hello = None;
        for step in steps.split(' ') {
            match step.split_once('=').unwrap_or((step, "")) {
                ("refuse", code) => peer.refuse(&probe, code.parse().unwrap()).await,
                ("answer", _) => peer.reply(&probe, DISCOVERED).await,
                ("initialize", _) => peer.initialize().await,
                ("hello", _) => hello = Some(peer.asked("initialize").await),
                ("refuse-hello", _) => peer.refuse(hello.as_ref().unwrap(), -32601).await,
                ("wait", _) => tokio::time::sleep(Duration::from_secs(290)).await,
                ("die", _) => {
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
