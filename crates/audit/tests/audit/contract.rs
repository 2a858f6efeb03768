//! What every layer must keep.

use callward_audit::{AuditConfig, AuditLayer, AuditLog, Fsync};
use callward_testkit::contract;
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_with_a_log_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = AuditConfig::new(folder.path().join("a.jsonl"));
    config.fsync = Fsync::Never;
    let log = AuditLog::open(&config).unwrap();
    for layer in [AuditLayer::new(log.clone()), AuditLayer::off()] {
        contract::check(|inner| layer.layer(inner)).await;
    }
    log.close().await;
}
