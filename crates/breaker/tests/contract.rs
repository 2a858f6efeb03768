//! What every layer must keep.

use std::time::Duration;

use callward_breaker::{Breaker, BreakerConfig, BreakerSet};
use callward_core::ServerId;
use callward_testkit::contract;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    let server = ServerId::new("orders").unwrap();
    contract::check(|inner| Breaker::new(inner, BreakerSet::default(), server.clone())).await;
}

#[tokio::test(start_paused = true)]
async fn the_layer_of_a_server_keeps_the_contract() {
    let server = ServerId::new("orders").unwrap();
    contract::check(|inner| Breaker::of_server(inner, &BreakerSet::default(), server.clone()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn both_together_and_timed_keep_the_contract() {
    let server = ServerId::new("orders").unwrap();
    let config = BreakerConfig::default()
        .with_failure_rate(50)
        .with_slow_calls(Duration::from_secs(5), 50);
    contract::check(|inner| {
        let set = BreakerSet::new(config).unwrap();
        let of_tool = Breaker::new(inner, set.clone(), server.clone());
        Breaker::of_server(of_tool, &set, server.clone())
    })
    .await;
}
