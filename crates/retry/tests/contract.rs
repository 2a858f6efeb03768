//! What every layer must keep.

use callward_retry::{RepeatPolicy, Retry};
use callward_testkit::contract;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract() {
    contract::check(|inner| Retry::new(inner, RepeatPolicy::default())).await;
}
