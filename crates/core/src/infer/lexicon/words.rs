//! The words as data: reads `words.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Use, VerbKind};

/// The one reading verb that may have a program to run; `run` and `execute` do not read anyway.
pub(in crate::infer) const QUERY: &str = "query";

/// The lists of verbs, by what they do.
pub(super) const BY_KIND: [(VerbKind, &str); 10] = [
    (VerbKind::Read, "read"),
    (VerbKind::Read, "read_nouns"),
    (VerbKind::Read, "read_in_prose"),
    (VerbKind::Add, "add"),
    (VerbKind::Mark, "mark"),
    (VerbKind::Act, "act"),
    (VerbKind::Set, "set"),
    (VerbKind::Change, "change"),
    (VerbKind::Delete, "delete"),
    (VerbKind::Damage, "damage"),
];

/// The lists of verbs that are not verbs everywhere in a name.
pub(super) const BY_USE: [(Use, &str); 5] = [
    (Use::Prose, "read_in_prose"),
    (Use::Noun, "mostly_noun"),
    (Use::Noun, "read_nouns"),
    (Use::Either, "verb_or_noun"),
    (Use::First, "verb_in_front"),
];

static LISTS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Vec<&str>> = HashMap::new();
    let lines = include_str!("words.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    for (name, words) in lines.filter_map(|line| line.split_once(": ")) {
        lists.entry(name).or_default().extend(words.split(' '));
    }
    lists
});

/// Returns the words of a list.
pub(in crate::infer) fn list(name: &str) -> &'static [&'static str] {
    LISTS.get(name).map_or(&[], Vec::as_slice)
}

/// Returns the verbs that read, or write, some objects only, each with these objects.
pub(super) fn with_objects(
    prefix: &str,
) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    LISTS
        .iter()
        .filter_map(move |(name, objects)| Some((name.strip_prefix(prefix)?, objects.as_slice())))
}

/// Returns how a word behaves in a name.
pub(super) fn usage(word: &str) -> Use {
    let listed = BY_USE.iter().find(|(_, name)| list(name).contains(&word));
    listed.map_or(Use::Verb, |(usage, _)| *usage)
}
