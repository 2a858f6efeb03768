//! Rotation.

use std::time::Duration;

use callward_audit::AuditLog;
use serde_json::json;

use crate::bed::{Bed, pay};

#[tokio::test]
async fn a_reopened_log_continues_its_chain() {
    let bed = Bed::new();
    for _ in 0..3 {
        bed.record(bed.config(), [pay(json!({}))]).await;
    }
    let report = bed.whole();
    assert_eq!((report.calls, report.files), (3, 1));
    assert_eq!(bed.records("opened").len(), 3);
    assert_eq!(bed.records("closed").len(), 3);
}

#[tokio::test]
async fn expired_files_are_deleted_and_the_log_states_it() {
    let bed = Bed::new();
    let config = bed.config_with(|config| {
        config.max_bytes = 4096;
        config.keep_files = Some(2);
    });
    bed.record(config, (0..60).map(|_| pay(json!({})))).await;
    let files = bed.files();
    assert_eq!(files.len(), 3, "{files:?}");
    let report = bed.whole();
    assert!(report.oldest > 1, "{report:?}");
    // one file more is missing than the log states
    std::fs::remove_file(&files[0]).unwrap();
    assert!(!bed.verified(None).is_whole());
}

#[tokio::test]
async fn a_file_has_its_time_in_the_first_line() {
    let bed = Bed::new();
    let config = bed.config_with(|config| config.max_age = Some(Duration::from_secs(3600)));
    bed.record(config, []).await;
    // the age counts from the first line, so it outlives the process
    let text = std::fs::read_to_string(&bed.path).unwrap();
    assert_eq!(bed.files().len(), 1);
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
