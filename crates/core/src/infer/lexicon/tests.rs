//! The lists agree with each other, and prose is brought back to them.

use std::collections::BTreeSet;

use super::words::*;
use super::*;

fn find_inflected(word: &str) -> Option<&'static str> {
    Lexicon::standard()
        .find_inflected(word)
        .map(|verb| &*verb.word)
}

#[test]
fn a_word_has_one_meaning_and_one_use() {
    let mut seen = BTreeSet::new();
    for word in BY_KIND.iter().flat_map(|(_, name)| list(name)) {
        assert!(seen.insert(word), "{word} is listed twice");
        assert!(word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        assert_eq!(find_inflected(word), Some(*word));
    }
    let mut used = BTreeSet::new();
    for word in BY_USE.iter().flat_map(|(_, name)| list(name)) {
        assert!(seen.contains(word), "{word} has a use but no meaning");
        assert!(used.insert(word), "{word} has two uses");
    }
}

#[test]
fn prose_is_brought_back_to_the_verb() {
    for forms in "Deletes=delete applies=apply Searches=search pushes=push Creating=create \
                  listing=list Getting=get process=process"
        .split(' ')
    {
        let (word, base) = forms.split_once('=').unwrap();
        assert_eq!(find_inflected(word), Some(base), "{word}");
    }
    for word in ["deleted", "thing", "s", "ing", "", "é", "löschen", "kings"] {
        assert_eq!(find_inflected(word), None, "{word}");
    }
}

#[test]
fn a_word_may_be_added_or_given_another_meaning() {
    let lexicon = Lexicon::standard()
        .clone()
        .with(VerbKind::Delete, "Void")
        .and_then(|lexicon| lexicon.with(VerbKind::Read, "deploy"))
        .and_then(|lexicon| lexicon.with(VerbKind::Delete, "löschen"))
        .unwrap();
    let kind = |word| lexicon.find_inflected(word).map(|verb| verb.kind);
    assert_eq!(kind("voids"), Some(VerbKind::Delete));
    assert_eq!(kind("DEPLOY"), Some(VerbKind::Read));
    assert_eq!(kind("LÖSCHEN"), Some(VerbKind::Delete));
    assert_eq!(kind("get"), Some(VerbKind::Read));
    assert_eq!(lexicon.base("Deploys"), Some("deploy"));
    let lexicon = lexicon.without("deploy");
    assert_eq!(lexicon.base("Deploys"), None);
    for word in ["", "two words", "a_b", "2fa"] {
        let error = Lexicon::standard().clone().with(VerbKind::Read, word);
        let error = error.unwrap_err().to_string();
        let expected = format!("{word:?} is not a single word");
        assert!(error.starts_with(&expected), "{error}");
    }
}
