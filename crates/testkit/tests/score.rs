//! What inference must reach on the corpus written for this project.

use tollgate_core::RuleSet;
use tollgate_testkit::score::{Hint, read, score};

#[test]
fn no_write_of_the_corpus_is_called_read_only() {
    let cases = read(include_str!("../data/corpus.jsonl")).unwrap();
    assert!(cases.len() >= 150);
    let ours = score(&cases, RuleSet::Standard);
    assert!(ours.harmful.is_empty(), "{ours}");
    let theirs = score(&cases, RuleSet::Neurolink);
    assert!(!theirs.harmful.is_empty(), "the corpus sets no trap");
}

#[test]
fn each_hint_is_found_as_often_as_before() {
    let cases = read(include_str!("../data/corpus.jsonl")).unwrap();
    let score = score(&cases, RuleSet::Standard);
    for (hint, floor) in [
        (Hint::ReadOnly, 0.95),
        (Hint::Destructive, 0.93),
        (Hint::Idempotent, 0.92),
        (Hint::OpenWorld, 0.60),
    ] {
        let f1 = score.total[&hint].f1().unwrap_or_default();
        assert!(f1 >= floor, "{hint:?} {f1}\n{score}");
    }
}
