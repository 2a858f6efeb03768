//! The cache is a layer like any other.

use callward_cache::{CacheConfig, CacheLayer};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_cache_keeps_the_contract_whether_on_or_off() {
    for enabled in [true, false] {
        let mut config = CacheConfig::default();
        config.enabled = enabled;
        contract::check(|inner| CacheLayer::new(config.clone()).layer(inner)).await;
    }
}
