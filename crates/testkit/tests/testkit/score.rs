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

#[track_caller]
fn reaches(cases: &[Case], floors: [f64; 4]) {
    let score = score(cases, RuleSet::Standard);
    for (hint, floor) in HINTS.into_iter().zip(floors) {
        let f1 = score.total[&hint].f1().unwrap_or_default();
        assert!(f1 >= floor, "{hint:?} {f1}\n{score}");
    }
}

#[test]
fn no_easy_write_is_called_read_only() {
    let (easy, _) = corpus();
    assert!(easy.len() >= 150);
    let ours = score(&easy, RuleSet::Standard);
    assert!(ours.harmful.is_empty(), "{ours}");
    let theirs = score(&easy, RuleSet::Neurolink);
    assert!(!theirs.harmful.is_empty(), "the corpus sets no trap");
}

#[test]
fn no_hard_write_is_called_read_only() {
    let (_, hard) = corpus();
    assert!(hard.len() >= 300);
    let ours = score(&hard, RuleSet::Standard);
    assert!(ours.harmful.is_empty(), "{ours}");
}

#[test]
fn each_easy_hint_is_found_as_often_as_before() {
    reaches(&corpus().0, [0.95, 0.93, 0.92, 0.60]);
}

#[test]
fn each_hard_hint_is_found_as_often_as_before() {
    reaches(&corpus().1, [0.65, 0.68, 0.66, 0.49]);
}
