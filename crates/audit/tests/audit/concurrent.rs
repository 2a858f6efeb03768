//! Many calls at once.

use callward_audit::AuditLog;
use callward_core::SecurityLevel;
use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, answering, audited, leveled, pay};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_restricted_calls_all_have_records_in_one_chain() {
    let bed = Bed::new();
    let config = bed.config_with(|config| (config.queue, config.max_bytes) = (8, 8192));
    let log = AuditLog::open(&config).unwrap();
    let public = leveled("see", SecurityLevel::Public);
    let tasks = [0, 1, 2, 3, 4, 5, 6, 7].map(|task| {
        let (service, public) = (audited(&log, answering()), public.clone());
        tokio::spawn(async move {
            for number in 0..100 {
                let paid = pay(json!({"id": task * 100 + number}));
                service.clone().oneshot(paid).await.unwrap();
                let seen = call(&public, json!({}));
                service.clone().oneshot(seen).await.unwrap();
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    log.close().await;
    assert_eq!(bed.whole().calls, 800);
    let stats = log.stats();
    assert_eq!((stats.written, stats.dropped, stats.failed), (800, 0, 0));
    let records = bed.records("call");
    let id = |record: &serde_json::Value| record["arguments"]["id"].as_u64().unwrap();
    let mut ids: Vec<_> = records.iter().map(id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..800).collect::<Vec<_>>());
    let files = bed.files();
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let len = std::fs::metadata(&file).unwrap().len();
        assert!(len < 8192 + 1024, "{} has {len}", file.display());
    }
}
