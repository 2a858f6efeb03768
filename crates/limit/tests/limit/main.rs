//! The limits, as a caller sees them, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod concurrency;
mod principal;
mod rate;
mod timeout;

use std::num::NonZeroU32;

use callward_limit::{AttemptTimeoutLayer, ConcurrencyLimitLayer, PrincipalLimitConfig};
use callward_limit::{PrincipalLimitLayer, RateLimitConfig, RateLimitLayer};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_layers_keep_the_contract() {
    contract::check(|inner| AttemptTimeoutLayer::new().layer(inner)).await;
    contract::check(|inner| ConcurrencyLimitLayer::default().layer(inner)).await;
    let mut limits = PrincipalLimitConfig::default();
    limits.generous = true;
    (limits.concurrent, limits.concurrent_writes) = (NonZeroU32::new(3), NonZeroU32::new(2));
    for limits in [PrincipalLimitConfig::default(), limits] {
        contract::check(|inner| PrincipalLimitLayer::new(limits).layer(inner)).await;
    }
    let mut config = RateLimitConfig::default();
    config.in_all = Some(6000.0);
    for config in [RateLimitConfig::default(), config] {
        contract::check(|inner| RateLimitLayer::new(config).unwrap().layer(inner)).await;
    }
}
