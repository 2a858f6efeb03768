//! Rotation.

use std::time::Duration;

use callward_audit::{AuditLog, Fsync};
use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, answering, audited, restricted};

#[tokio::test(flavor = "multi_thread")]
async fn rotation_under_load_keeps_the_chain() {
    let bed = Bed::new();
    let config = bed.config().with_max_bytes(8192).with_fsync(Fsync::Never);
    let log = AuditLog::open(&config).unwrap();
    let pay = restricted("pay");
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (service, pay) = (audited(&log, answering()), pay.clone());
            tokio::spawn(async move {
                for _ in 0..100 {
                    let asked = call(&pay, json!({}));
                    service.clone().oneshot(asked).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    log.close().await;
    let report = bed.report();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.calls, 800);
    assert!(report.files > 20, "{report:?}");
    for file in bed.files() {
        let len = std::fs::metadata(&file).unwrap().len();
        assert!(len < 8192 + 1024, "{} has {len}", file.display());
    }
}

#[tokio::test]
async fn a_reopened_log_continues_its_chain() {
    let bed = Bed::new();
    for _ in 0..3 {
        let log = bed.open();
        let asked = call(&restricted("pay"), json!({}));
        audited(&log, answering()).oneshot(asked).await.unwrap();
        log.close().await;
    }
    let report = bed.report();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.calls, report.files), (3, 1));
    assert_eq!(bed.records("opened").len(), 3);
    assert_eq!(bed.records("closed").len(), 3);
}

#[tokio::test]
async fn expired_files_are_deleted_and_the_log_states_it() {
    let bed = Bed::new();
    let config = bed.config().with_max_bytes(4096).with_keep_files(2);
    let log = AuditLog::open(&config).unwrap();
    let pay = restricted("pay");
    for _ in 0..60 {
        let asked = call(&pay, json!({}));
        audited(&log, answering()).oneshot(asked).await.unwrap();
        log.flush().await;
    }
    log.close().await;
    let files = bed.files();
    assert_eq!(files.len(), 3, "{files:?}");
    let report = bed.report();
    assert!(report.is_whole(), "{report:?}");
    assert!(report.oldest > 1, "{report:?}");
    // one file more is missing than the log states
    std::fs::remove_file(&files[0]).unwrap();
    assert!(!bed.report().is_whole());
}

#[tokio::test]
async fn a_file_has_its_time_in_the_first_line() {
    let bed = Bed::new();
    let config = bed.config().with_max_age(Duration::from_secs(3600));
    let log = AuditLog::open(&config).unwrap();
    log.close().await;
    // the age counts from the first line, so it outlives the process
    let text = std::fs::read_to_string(&bed.path).unwrap();
    assert_eq!(bed.files().len(), 1);
    drop(log);
    let year = &text[text.find("\"time\":\"").unwrap() + 8..][..4];
    assert!(year.parse::<u32>().unwrap() >= 2024, "{text}");
}

#[tokio::test]
async fn a_second_process_cannot_open_the_log() {
    let bed = Bed::new();
    let log = bed.open();
    let error = AuditLog::open(&bed.config()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("another process"), "{source}");
    log.close().await;
    drop(bed.open());
}
