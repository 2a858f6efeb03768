//! The cache is a layer like any other.

use callward_cache::{CacheConfig, CacheLayer};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_cache_keeps_the_contract() {
    contract::check(|inner| CacheLayer::default().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_off_keeps_the_contract() {
    let mut config = CacheConfig::default();
    config.enabled = false;
    contract::check(|inner| CacheLayer::new(config.clone()).layer(inner)).await;
}
