//! Which era is spoken over a pipe.

use std::time::Duration;

use callward_mcp::client::EraChoice;
use callward_mcp::wire::Era;
use serde_json::json;

use crate::script::{DISCOVERED, LONG, call, legacy, scripted};

#[tokio::test(start_paused = true)]
async fn a_discovery_makes_a_server_modern_and_each_request_says_who_asks() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.client_info("me", "7").start();
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "me", "version": "7"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(probe.value()["_meta"], meta);
    peer.reply(&probe, DISCOVERED).await;
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
    let asked = peer.serve(&upstream, call("x", "{}")).await;
    assert_eq!(asked.value()["_meta"], meta);
}

#[tokio::test(start_paused = true)]
async fn a_refused_probe_means_legacy_whatever_the_code() {
    for code in [-32601, -32602, -32600, -32603, -32000] {
        let (builder, mut script) = scripted(1 << 16);
        let upstream = builder.start();
        let mut peer = script.accept().await;
        let probe = peer.asked("server/discover").await;
        peer.refuse(&probe, code).await;
        peer.initialize().await;
        upstream.ready(LONG).await.unwrap();
        let info = upstream.server_info().unwrap();
        assert_eq!(
            (info.era, info.version.as_str()),
            (Era::Legacy, "2025-11-25")
        );
        let asked = peer.serve(&upstream, call("x", "{}")).await;
        assert_eq!(asked.params, r#"{"name":"x","arguments":{}}"#, "no `_meta`");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_means_legacy() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.start();
    let mut peer = script.accept().await;
    peer.asked("server/discover").await;
    peer.initialize().await;
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, Era::Legacy);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_starts_slowly_is_still_modern() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.start();
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    let hello = peer.asked("initialize").await; // we have lost patience
    peer.reply(&probe, DISCOVERED).await;
    peer.refuse(&hello, -32601).await;
    upstream.ready(LONG).await.unwrap();
    assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_minutes_to_start_is_waited_for() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.start();
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    tokio::time::sleep(Duration::from_secs(290)).await;
    peer.reply(&probe, DISCOVERED).await;
    upstream.ready(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_of_the_probe_is_greeted_the_old_way_next_time() {
    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.start();
    let mut peer = script.accept().await;
    peer.asked("server/discover").await;
    drop(peer);
    let mut peer = script.accept().await;
    peer.initialize().await;
    upstream.ready(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_known_legacy_server_is_not_probed_again() {
    let (_upstream, peer, mut script) = legacy().await;
    drop(peer);
    script.accept().await.initialize().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_era_is_not_asked_for() {
    let (builder, mut script) = scripted(1 << 16);
    let _upstream = builder.era(EraChoice::Legacy).start();
    script.accept().await.initialize().await;

    let (builder, mut script) = scripted(1 << 16);
    let upstream = builder.era(EraChoice::Modern).start();
    let mut peer = script.accept().await;
    let probe = peer.asked("server/discover").await;
    peer.refuse(&probe, -32601).await;
    let error = upstream
        .ready(Duration::from_secs(1))
        .await
        .expect_err("no legacy");
    assert!(error.message().contains("era is set to modern"), "{error}");
}
