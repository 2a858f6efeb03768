//! What inference must reach on the corpus written for this project.

use tollgate_core::RuleSet;
use tollgate_testkit::score::{Case, Hint, read, score};

/// The servers that were in view when the rules were written. All others came after, and their
/// labels were written before any verdict on them was looked at: they are the harder half.
const IN_VIEW: [&str; 8] = [
    "clock", "cluster", "db", "ledger", "mailbox", "store", "tracker", "web",
];

/// The corpus, as what was in view and what was not.
fn corpus() -> (Vec<Case>, Vec<Case>) {
    read(include_str!("../data/corpus.jsonl"))
        .unwrap_or_default()
        .into_iter()
        .partition(|case| IN_VIEW.contains(&case.server.as_str()))
}

#[track_caller]
fn reaches(cases: &[Case], floors: [f64; 4]) {
    let score = score(cases, RuleSet::Standard);
    for (hint, floor) in Hint::ALL.into_iter().zip(floors) {
        let f1 = score.total[&hint].f1().unwrap_or_default();
        assert!(f1 >= floor, "{hint:?} {f1}\n{score}");
    }
}

#[test]
fn no_write_in_view_is_called_read_only() {
    let (seen, _) = corpus();
    assert!(seen.len() >= 150);
    let ours = score(&seen, RuleSet::Standard);
    assert!(ours.harmful.is_empty(), "{ours}");
    let theirs = score(&seen, RuleSet::Neurolink);
    assert!(!theirs.harmful.is_empty(), "the corpus sets no trap");
}

#[test]
fn few_writes_out_of_view_are_called_read_only() {
    let (_, unseen) = corpus();
    assert!(unseen.len() >= 300);
    let ours = score(&unseen, RuleSet::Standard);
    assert!(ours.harmful.len() <= 6, "{ours}");
}

#[test]
fn each_hint_in_view_is_found_as_often_as_before() {
    reaches(&corpus().0, [0.95, 0.93, 0.92, 0.60]);
}

#[test]
fn each_hint_out_of_view_is_found_as_often_as_before() {
    reaches(&corpus().1, [0.48, 0.67, 0.52, 0.49]);
}
