//! What every layer must keep.

use tollgate_loopguard::LoopGuardLayer;
use tollgate_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_switched_on_and_off() {
    for layer in [LoopGuardLayer::default(), LoopGuardLayer::off()] {
        contract::check(|inner| layer.layer(inner)).await;
    }
}
