//! What every layer must keep.

use callward_audit::AuditLayer;
use callward_testkit::contract;
use tower::Layer;

use crate::bed::Bed;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_with_a_log_and_without() {
    let bed = Bed::new();
    let log = bed.open();
    for layer in [AuditLayer::new(log.clone()), AuditLayer::default()] {
        contract::check(|inner| layer.layer(inner)).await;
    }
    log.close().await;
}
