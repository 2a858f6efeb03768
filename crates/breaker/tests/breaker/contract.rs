//! What every layer must keep.

use std::time::Duration;

use callward_breaker::{BreakerConfig, BreakerLayer, BreakerSet};
use callward_core::ServerId;
use callward_testkit::contract;
use tower_layer::Layer;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    let server = ServerId::new("orders").unwrap();
    contract::check(|inner| BreakerLayer::new(BreakerSet::default(), server.clone()).layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_layer_of_a_server_keeps_the_contract() {
    let server = ServerId::new("orders").unwrap();
    contract::check(|inner| {
        BreakerLayer::of_server(BreakerSet::default(), server.clone()).layer(inner)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn both_together_and_timed_keep_the_contract() {
    let server = ServerId::new("orders").unwrap();
    let config = BreakerConfig::default()
        .with_failure_rate(50)
        .with_slow_calls(Duration::from_secs(5), 50);
    contract::check(|inner| {
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        let of_tool = BreakerLayer::new(set.clone(), server.clone()).layer(inner);
        BreakerLayer::of_server(set, server.clone()).layer(of_tool)
    })
    .await;
}
