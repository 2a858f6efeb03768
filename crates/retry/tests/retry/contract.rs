//! What every layer must keep.

use callward_retry::{Retry, RetryPolicy};
use callward_testkit::contract;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    contract::check(|inner| Retry::new(inner, RetryPolicy::default())).await;
}
