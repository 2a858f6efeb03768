//! What every layer must keep.

use tollgate_breaker::{Breaker, BreakerSet};
use tollgate_core::ServerId;
use tollgate_testkit::contract;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    let server = ServerId::new("orders").unwrap();
    contract::check(|inner| Breaker::new(inner, BreakerSet::default(), server.clone())).await;
}
