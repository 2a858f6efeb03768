//! Many calls at once.

use callward_audit::{AuditConfig, AuditLog, Fsync};
use callward_core::SecurityLevel;
use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, answering, audited, leveled, pay};

/// Makes 800 restricted calls in 16 tasks, and as many public ones.
async fn calls(bed: &Bed, config: &AuditConfig) {
    let log = AuditLog::open(config).unwrap();
    let public = leveled("see", SecurityLevel::Public);
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (service, public) = (audited(&log, answering()), public.clone());
            tokio::spawn(async move {
                for number in 0..50 {
                    let paid = pay(json!({"id": task * 50 + number}));
                    service.clone().oneshot(paid).await.unwrap();
                    let seen = call(&public, json!({}));
                    service.clone().oneshot(seen).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    log.close().await;
    assert_eq!(bed.whole().calls, 800);
    let stats = log.stats();
    assert_eq!((stats.written, stats.dropped, stats.failed), (800, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_restricted_calls_all_have_records() {
    let bed = Bed::new();
    calls(&bed, &bed.config_with(|config| config.queue = 8)).await;
    let records = bed.records("call");
    let id = |record: &serde_json::Value| record["arguments"]["id"].as_u64().unwrap();
    let mut ids: Vec<_> = records.iter().map(id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..800).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_under_load_keeps_the_chain() {
    let bed = Bed::new();
    let config = bed.config_with(|config| {
        config.max_bytes = 8192;
        config.fsync = Fsync::Never;
    });
    calls(&bed, &config).await;
    let files = bed.files();
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let len = std::fs::metadata(&file).unwrap().len();
        assert!(len < 8192 + 1024, "{} has {len}", file.display());
    }
}
