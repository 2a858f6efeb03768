//! The lists agree with each other, and prose is brought back to them.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_word_has_one_meaning_and_one_use() {
    let all = |groups: &[&'static [&'static str]]| groups.concat().leak();
    let mut seen = BTreeSet::new();
    for word in words(all(&[
        READ,
        READ_IN_PROSE,
        ADD,
        MARK,
        ACT,
        SET,
        CHANGE,
        DELETE,
        DAMAGE,
    ])) {
        assert!(seen.insert(word), "{word} is listed twice");
        assert!(
            word.bytes().all(|b| b.is_ascii_lowercase()),
            "{word} is not a lower-case word"
        );
        assert_eq!(find_inflected(word).map(|verb| verb.word), Some(word));
    }
    let mut used = BTreeSet::new();
    for word in words(all(&[VERB_IN_FRONT, VERB_OR_NOUN, MOSTLY_NOUN])) {
        assert!(seen.contains(word), "{word} has a use but no meaning");
        assert!(used.insert(word), "{word} has two uses");
    }
}

#[test]
fn prose_is_brought_back_to_the_verb() {
    for (word, base) in [
        ("Deletes", "delete"),
        ("applies", "apply"),
        ("Searches", "search"),
        ("pushes", "push"),
        ("Creating", "create"),
        ("listing", "list"),
        ("Getting", "get"),
        ("process", "process"),
    ] {
        assert_eq!(
            find_inflected(word).map(|verb| verb.word),
            Some(base),
            "{word}"
        );
    }
    for word in ["deleted", "thing", "s", "ing", "", "é", "löschen", "kings"] {
        assert_eq!(find_inflected(word), None, "{word}");
    }
}
