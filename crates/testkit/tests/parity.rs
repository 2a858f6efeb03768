//! NeuroLink's answers, case by case.
//!
//! `data/neurolink-cases.jsonl` holds cases written for this project, one an edge. A larger recording
//! in the same format is used as well where one lies beside the checkout.

use std::path::Path;

use tollgate_testkit::parity::Parity;

#[test]
fn our_own_cases_agree() {
    let parity = Parity::run(include_str!("../data/neurolink-cases.jsonl"));
    assert!(parity.failed.is_empty(), "{parity}");
    assert_eq!(parity.count_passed(), 45);
    assert_eq!(parity.deviations, 1);
    assert_eq!(parity.passed.len(), 10, "a function has no case: {parity}");
    assert_eq!(parity.skipped.get("route"), Some(&1));
    assert!(parity.to_string().ends_with("\n45 passed, 0 failed"));
}

#[test]
fn the_recording_agrees_where_there_is_one() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/parity/neurolink-dev.jsonl");
    match std::fs::read_to_string(&path) {
        Ok(cases) => {
            let parity = Parity::run(&cases);
            assert!(parity.failed.is_empty(), "{parity}");
        }
        Err(_) => println!("skipped: no recording at {}", path.display()),
    }
}

#[test]
fn a_wrong_answer_and_a_broken_line_are_shown() {
    let cases = concat!(
        r#"{"fn":"isSafeToRetry","input":{"annotations":{}},"output":true}"#,
        "\nnot a case\n",
        r#"{"fn":"mergeAnnotations","input":7,"output":{}}"#,
    );
    let parity = Parity::run(cases);
    let lines: Vec<usize> = parity.failed.iter().map(|failed| failed.line).collect();
    assert_eq!(lines, [1, 2, 3]);
    assert!(parity.to_string().ends_with("\n0 passed, 3 failed"));
}
