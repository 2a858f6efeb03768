//! Rotation.

use serde_json::json;

use crate::bed::{Bed, pay};

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
