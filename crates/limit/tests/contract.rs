//! Every layer of this crate keeps what all layers must keep.

use tollgate_limit::{AttemptTimeoutLayer, ConcurrencyLimitLayer};
use tollgate_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_attempt_timeout_keeps_the_contract() {
    contract::check(|inner| AttemptTimeoutLayer::new().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_limit_keeps_the_contract() {
    contract::check(|inner| ConcurrencyLimitLayer::default().layer(inner)).await;
}
