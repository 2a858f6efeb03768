//! NeuroLink's answers, case by case.
//!
//! `data/neurolink-cases.jsonl` holds cases written for this project, one an edge. A larger
//! recording in the same format is used as well where one is beside the checkout.

use std::path::Path;

use callward_testkit::parity::{Deviation, Parity};

#[test]
fn our_own_cases_agree() {
    let parity = Parity::run(include_str!("../../data/neurolink-cases.jsonl"));
    assert!(parity.failed.is_empty(), "{parity}");
    assert_eq!(parity.count_passed(), 52);
    assert_eq!(parity.passed.len(), 11, "a function has no case: {parity}");
    assert!(parity.skipped.is_empty(), "{parity}");
    for (deviation, cases) in [
        (Deviation::NoPrimary, 1),
        (Deviation::Primary, 2),
        (Deviation::Pinned, 1),
        (Deviation::Turns, 1),
        (Deviation::ForWeight, 1),
        (Deviation::Wider, 1),
    ] {
        let counted = parity.deviations.get(&deviation).copied();
        assert_eq!(counted, Some(cases), "{deviation:?}: {parity}");
    }
    assert!(parity.to_string().ends_with("\n52 passed, 0 failed"));
}

#[test]
fn the_recording_agrees_where_there_is_one() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/parity/neurolink-dev.jsonl");
    match std::fs::read_to_string(&path) {
        Ok(cases) => {
            let parity = Parity::run(&cases);
            assert!(parity.failed.is_empty(), "{parity}");
            assert!(parity.skipped.is_empty(), "{parity}");
        }
        Err(_) => println!("skipped: no recording at {}", path.display()),
    }
}

#[test]
fn a_route_that_differs_for_no_reason_fails() {
    let servers = r#""servers":[{"id":"a"},{"id":"b"}]"#;
    let heavy =
        r#""config":{"strategy":"priority","serverWeights":[{"serverId":"b","weight":80}]}"#;
    let reads = r#"{"name":"x","annotations":{"readOnlyHint":true}}"#;
    let turns = r#""config":{"strategy":"round-robin"}"#;
    for (setup, decided) in [
        // the lighter one
        (heavy, r#"{"serverId":"a","alternates":["b"]}"#),
        // none, though all are there
        (heavy, r#"{"throws":"TOOL_EXECUTION_FAILED"}"#),
        // one that is not among those that may
        (turns, r#"{"serverId":"ghost","alternates":[]}"#),
        // the others left out
        (turns, r#"{"serverId":"a","alternates":[]}"#),
    ] {
        let case = format!(
            r#"{{"fn":"route","input":{{{setup},{servers},"calls":[{{"tool":{reads}}}]}},"output":[{decided}]}}"#
        );
        let parity = Parity::run(&case);
        assert_eq!(parity.failed.len(), 1, "{case}\n{parity}");
    }
    let listed = format!(
        r#"{{"fn":"routeByAnnotation","input":{{{heavy},{servers},"tool":{reads}}},"output":["b","a"]}}"#
    );
    assert_eq!(Parity::run(&listed).failed.len(), 1, "in another order");
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
