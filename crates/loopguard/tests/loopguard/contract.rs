//! What every layer must keep.

use callward_loopguard::{LoopGuardConfig, LoopGuardLayer, Sessionless};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_whether_it_counts_a_call_or_not() {
    // the probes call without a session
    let counts = LoopGuardConfig::default().with_without_session(Sessionless::ByPrincipal);
    for layer in [
        LoopGuardLayer::new(counts).unwrap(),
        LoopGuardLayer::default(),
        LoopGuardLayer::off(),
    ] {
        contract::check(|inner| layer.layer(inner)).await;
    }
}
