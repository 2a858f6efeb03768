//! The page about trails has each word that a stage uses, and no other.

use std::collections::BTreeSet;

use callward::core::trail::Stage;

#[test]
fn the_page_has_the_words_of_each_stage() {
    let page = include_str!("../../../docs/trail.md");
    let table = page
        .split("| stage | expected | observed |")
        .nth(1)
        .unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut stages = Vec::new();
    for row in rows {
        let mut words = row.split('`').skip(1).step_by(2);
        stages.push(words.next().unwrap());
        let reported: BTreeSet<_> = words.collect();
        let stage = Stage::ALL.get(stages.len() - 1).unwrap();
        let used = stage.verdicts().iter().map(|verdict| verdict.as_str());
        assert_eq!(reported, used.collect::<BTreeSet<_>>(), "{stage}");
    }
    let all: Vec<_> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
    assert_eq!(stages, all);
}
