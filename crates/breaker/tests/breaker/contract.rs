//! What every layer must keep.

use std::time::Duration;

use callward_breaker::{BreakerConfig, BreakerLayer, BreakerSet};
use callward_core::ServerId;
use callward_testkit::contract;
use tower_layer::Layer;

#[tokio::test(start_paused = true)]
async fn the_layers_keep_the_contract() {
    let server = ServerId::new("orders").unwrap();
    let of_tool = |set| BreakerLayer::new(set, server.clone());
    let of_server = |set| BreakerLayer::of_server(set, server.clone());
    contract::check(|inner| of_tool(BreakerSet::default()).layer(inner)).await;
    contract::check(|inner| of_server(BreakerSet::default()).layer(inner)).await;
    let config = BreakerConfig::default()
        .with_failure_rate(50)
        .with_slow_calls(Duration::from_secs(5), 50);
    contract::check(|inner| {
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        of_server(set.clone()).layer(of_tool(set).layer(inner))
    })
    .await;
}
