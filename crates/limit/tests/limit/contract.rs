//! Every layer of this crate keeps what all layers must keep.

use callward_limit::{AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_attempt_timeout_keeps_the_contract() {
    contract::check(|inner| AttemptTimeoutLayer::new().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_limit_keeps_the_contract() {
    contract::check(|inner| ConcurrencyLimitLayer::default().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_keeps_the_contract() {
    let config = RateLimitConfig::for_server(6000.0).with_per_principal(Some(600.0));
    for config in [RateLimitConfig::default(), config] {
        contract::check(|inner| RateLimitLayer::new(config).unwrap().layer(inner)).await;
    }
}
