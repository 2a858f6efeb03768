//! Processes that are killed.

use serde_json::json;

use crate::bed::{Bed, pay};

async fn one_call(bed: &Bed) {
    bed.record(bed.config(), [pay(json!({}))]).await;
}

/// Leaves the log as a kill does: without its closing record, and with `keep` bytes of a line.
fn kill(bed: &Bed, keep: usize) -> Vec<u8> {
    let mut text = std::fs::read(&bed.path).unwrap();
    let mut before = text[..text.len() - 1].iter();
    let closing = before.rposition(|byte| *byte == b'\n').unwrap();
    text.truncate(closing + 1 + keep);
    std::fs::write(&bed.path, &text).unwrap();
    text
}

#[tokio::test]
async fn the_chain_continues_after_a_partial_line() {
    for keep in [0, 1, 2, 10, 60, 150] {
        let bed = Bed::new();
        one_call(&bed).await;
        assert_eq!(bed.whole().closed, Some(true));
        let text = kill(&bed, keep);
        let (before, torn) = (bed.whole(), u64::from(keep > 0));
        assert_eq!((before.closed, before.torn), (Some(false), torn));
        one_call(&bed).await;
        let after = bed.whole();
        assert_eq!(
            (after.files, after.torn, after.calls),
            (1 + torn, torn, 2),
            "{keep}"
        );
        // the report of the kill stays after the next start
        assert_eq!((after.closed, after.unclosed), (Some(true), 1), "{keep}");
        // nothing that was written is removed
        assert!(std::fs::read(&bed.files()[0]).unwrap().starts_with(&text));
    }
}

#[tokio::test]
async fn a_kill_during_rotation_leaves_one_chain() {
    for begun in [None, Some(""), Some("{\"seq\":4,\"ti")] {
        let bed = Bed::new();
        one_call(&bed).await;
        let closed = bed.folder.path().join("audit.000001.jsonl");
        std::fs::rename(&bed.path, &closed).unwrap();
        if let Some(begun) = begun {
            std::fs::write(&bed.path, begun).unwrap();
            let before = bed.whole();
            assert_eq!((before.calls, before.files), (1, 1));
            // an emptied file is not a closed log
            assert_eq!(before.closed, Some(false));
        }
        one_call(&bed).await;
        let report = bed.whole();
        assert_eq!((report.calls, report.files), (2, 2), "{begun:?}");
    }
}
