//! Every layer of this crate keeps what all layers must keep.

use callward_limit::{AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_layers_keep_the_contract() {
    contract::check(|inner| AttemptTimeoutLayer::new().layer(inner)).await;
    contract::check(|inner| ConcurrencyLimitLayer::default().layer(inner)).await;
    let config = RateLimitConfig::default().with_in_all(Some(6000.0));
    let config = config.with_per_principal(Some(600.0));
    for config in [RateLimitConfig::default(), config] {
        contract::check(|inner| RateLimitLayer::new(config).unwrap().layer(inner)).await;
    }
}
