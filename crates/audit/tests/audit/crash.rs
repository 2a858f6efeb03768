//! A process that stops in the middle of a line.

use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;

use crate::bench::{Bench, answering, audited, restricted};

async fn one_call(bench: &Bench) {
    let log = bench.open();
    let asked = call(&restricted("pay"), json!({}));
    audited(&log, answering()).oneshot(asked).await.unwrap();
    log.close().await;
}

/// Cuts the log as a kill does: after the head was written, and anywhere.
fn torn(bench: &Bench, keep: usize) -> Vec<u8> {
    let whole = std::fs::read(&bench.path).unwrap();
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    let mut text = whole.clone();
    // a record that the head does not know
    text.extend_from_slice(&whole[last..last + keep]);
    std::fs::write(&bench.path, &text).unwrap();
    text
}

#[tokio::test]
async fn a_line_that_broke_off_is_repaired_at_the_next_start_wherever_it_broke() {
    for keep in [1, 2, 10, 60, 150] {
        let bench = Bench::new();
        one_call(&bench).await;
        let text = torn(&bench, keep);
        let before = bench.report();
        assert!(before.is_whole(), "{before:?}");
        assert_eq!(before.torn_bytes, keep as u64);
        one_call(&bench).await;
        let after = bench.report();
        assert!(after.is_whole(), "{keep}: {after:?}");
        assert_eq!((after.repaired, after.calls), (1, 2), "{keep}");
        // nothing that was written is taken away
        assert!(std::fs::read(&bench.path).unwrap().starts_with(&text));
        let repair = &bench.records("repair")[0];
        assert_eq!(repair["torn_bytes"], keep);
    }
}

#[tokio::test]
async fn a_repair_excuses_the_line_it_speaks_of_and_no_other() {
    let bench = Bench::new();
    one_call(&bench).await;
    torn(&bench, 40);
    one_call(&bench).await;
    let text = std::fs::read_to_string(&bench.path).unwrap();
    let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
    let at = lines
        .iter()
        .position(|line| line.contains("\"repair\""))
        .unwrap()
        - 1;
    assert_eq!(lines[at].len(), 41);
    lines[at].replace_range(20..21, "#");
    std::fs::write(&bench.path, lines.concat()).unwrap();
    let fault = bench.report().fault.unwrap();
    assert_eq!(fault.line, at as u64 + 1, "{fault}");
}

#[tokio::test]
async fn a_line_that_lacks_only_its_end_is_a_record() {
    let bench = Bench::new();
    one_call(&bench).await;
    let mut text = std::fs::read(&bench.path).unwrap();
    assert_eq!(text.pop(), Some(b'\n'));
    std::fs::write(&bench.path, &text).unwrap();
    one_call(&bench).await;
    let report = bench.report();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.repaired, report.calls), (0, 2));
}

#[tokio::test]
async fn a_process_that_stops_between_two_files_leaves_one_chain() {
    for begun in [None, Some(""), Some("{\"seq\":4,\"ti")] {
        let bench = Bench::new();
        one_call(&bench).await;
        let closed = bench.folder.path().join("audit.000001.jsonl");
        std::fs::rename(&bench.path, &closed).unwrap();
        if let Some(begun) = begun {
            std::fs::write(&bench.path, begun).unwrap();
        }
        one_call(&bench).await;
        let report = bench.report();
        assert!(report.is_whole(), "{begun:?}: {report:?}");
        assert_eq!((report.calls, report.files), (2, 2));
    }
}

#[tokio::test]
async fn a_log_that_was_not_closed_is_whole_and_says_so() {
    let bench = Bench::new();
    one_call(&bench).await;
    let closed = bench.report();
    assert_eq!((closed.closed, closed.unclosed), (Some(true), 0));

    // as a kill leaves it: all but the last line
    let cut = |bench: &Bench| {
        let text = std::fs::read_to_string(&bench.path).unwrap();
        let end = text.trim_end().rfind('\n').unwrap();
        assert!(text[end..].contains("\"closed\""));
        std::fs::write(&bench.path, &text[..=end]).unwrap();
    };
    let log = bench.open();
    let asked = call(&restricted("pay"), json!({}));
    audited(&log, answering()).oneshot(asked).await.unwrap();
    log.flush().await;
    let running = bench.report();
    assert!(running.is_whole(), "{running:?}");
    assert_eq!((running.closed, running.unclosed), (Some(false), 0));
    let head = bench.folder.path().join("audit.jsonl.head");
    let before = std::fs::read(&head).unwrap();
    log.close().await;
    cut(&bench);
    std::fs::write(&head, before).unwrap();
    assert_eq!(bench.report().closed, Some(false));

    // the next start shows it for good
    one_call(&bench).await;
    let after = bench.report();
    assert!(after.is_whole(), "{after:?}");
    assert_eq!((after.closed, after.unclosed), (Some(true), 1));
}

#[tokio::test]
async fn a_log_without_its_head_is_not_whole_now_nor_after_a_start() {
    let bench = Bench::new();
    one_call(&bench).await;
    std::fs::remove_file(bench.folder.path().join("audit.jsonl.head")).unwrap();
    for _ in 0..2 {
        let fault = bench.report().fault.unwrap();
        assert!(fault.what.contains("the head is missing"), "{fault}");
        one_call(&bench).await;
    }
}

#[tokio::test]
async fn a_file_without_its_first_line_is_begun_anew() {
    for begun in ["", "{\"seq\":"] {
        let bench = Bench::new();
        one_call(&bench).await;
        // as a kill between creating the next file and writing to it leaves them
        let closed = bench.path.with_extension("000001.jsonl");
        std::fs::rename(&bench.path, closed).unwrap();
        std::fs::write(&bench.path, begun).unwrap();
        let before = bench.report();
        assert!(before.is_whole(), "{before:?}");
        assert_eq!((before.calls, before.files), (1, 1));
        one_call(&bench).await;
        let after = bench.report();
        assert!(after.is_whole(), "{after:?}");
        assert_eq!((after.calls, after.files), (2, 2));
        // a file whose lines were cut is not one that was begun
        std::fs::write(&bench.path, begun).unwrap();
        assert!(!bench.report().is_whole());
    }
}
