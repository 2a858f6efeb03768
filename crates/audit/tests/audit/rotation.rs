//! Files that are closed and begun.

use std::time::Duration;

use callward_audit::{AuditLog, Fsync};
use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;

use crate::bench::{Bench, answering, audited, restricted};

#[tokio::test(flavor = "multi_thread")]
async fn files_that_change_under_load_are_one_chain() {
    let bench = Bench::new();
    let config = bench.config().with_max_bytes(8192).with_fsync(Fsync::Never);
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
    let report = bench.report();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.calls, 800);
    assert!(report.files > 20, "{report:?}");
    for file in bench.files() {
        let len = std::fs::metadata(&file).unwrap().len();
        assert!(len < 8192 + 1024, "{} has {len}", file.display());
    }
}

#[tokio::test]
async fn a_log_goes_on_where_it_ended() {
    let bench = Bench::new();
    for _ in 0..3 {
        let log = bench.open();
        let asked = call(&restricted("pay"), json!({}));
        audited(&log, answering()).oneshot(asked).await.unwrap();
        log.close().await;
    }
    let report = bench.report();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.calls, report.files), (3, 1));
    assert_eq!(bench.records("opened").len(), 3);
    assert_eq!(bench.records("closed").len(), 3);
}

#[tokio::test]
async fn files_that_are_no_longer_kept_are_removed_and_the_log_says_so() {
    let bench = Bench::new();
    let config = bench.config().with_max_bytes(4096).with_keep_files(2);
    let log = AuditLog::open(&config).unwrap();
    let pay = restricted("pay");
    for _ in 0..60 {
        let asked = call(&pay, json!({}));
        audited(&log, answering()).oneshot(asked).await.unwrap();
        log.flush().await;
    }
    log.close().await;
    let files = bench.files();
    assert_eq!(files.len(), 3, "{files:?}");
    let report = bench.report();
    assert!(report.is_whole(), "{report:?}");
    assert!(
        report.notes[0].contains("removed as the settings ask"),
        "{report:?}"
    );
    // one more than the log says is gone: taken
    std::fs::remove_file(&files[0]).unwrap();
    assert!(!bench.report().is_whole());
}

#[tokio::test]
async fn a_file_is_closed_when_it_is_old() {
    let bench = Bench::new();
    let config = bench.config().with_max_age(Duration::from_secs(3600));
    let log = AuditLog::open(&config).unwrap();
    log.close().await;
    // the age is counted from what the first line says, so it outlives the process
    let text = std::fs::read_to_string(&bench.path).unwrap();
    assert_eq!(bench.files().len(), 1);
    drop(log);
    let year = &text[text.find("\"time\":\"").unwrap() + 8..][..4];
    assert!(year.parse::<u32>().unwrap() >= 2024, "{text}");
}

#[tokio::test]
async fn nobody_else_writes_a_log_that_is_written() {
    let bench = Bench::new();
    let log = bench.open();
    let error = AuditLog::open(&bench.config()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("another process"), "{source}");
    log.close().await;
    drop(bench.open());
}
