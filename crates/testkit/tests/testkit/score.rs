//! What inference must reach on the corpus written for this project.

use callward_core::RuleSet;
use callward_testkit::score::{Case, HINTS, read, score};

/// The servers the rules were first written for. All others came later, their labels before any
/// verdict on them was looked at: they are the harder half. Rules have been mended with both in
/// view since.
const EASY: [&str; 8] = [
    "clock", "cluster", "db", "ledger", "mailbox", "store", "tracker", "web",
];

/// The corpus, as its easy and its hard half.
fn corpus() -> (Vec<Case>, Vec<Case>) {
    read(include_str!("../../data/corpus.jsonl"))
        .unwrap_or_default()
        .into_iter()
        .partition(|case| EASY.contains(&case.server.as_str()))
}

#[test]
fn no_write_is_called_read_only_and_hints_are_found_as_before() {
    let (easy, hard) = corpus();
    for (cases, at_least, floors) in [
        (&easy, 150, [0.96, 0.96, 0.96, 0.61]),
        (&hard, 300, [0.71, 0.69, 0.69, 0.49]),
    ] {
        assert!(cases.len() >= at_least);
        let ours = score(cases, RuleSet::Standard);
        assert!(ours.harmful.is_empty(), "{ours}");
        for (hint, floor) in HINTS.into_iter().zip(floors) {
            let f1 = ours.total[&hint].f1().unwrap_or_default();
            assert!(f1 >= floor, "{hint:?} {f1}\n{ours}");
        }
    }
    let theirs = score(&easy, RuleSet::Neurolink);
    assert!(!theirs.harmful.is_empty(), "the corpus sets no trap");
}
