//! What words that are no verbs, or are more than that, tell.
//!
//! A name or a sentence asks for many lists at once, so that they are one index: one look for each
//! word, whatever the number of lists.

use std::sync::LazyLock;

use super::words::{
    AFTER_NOUN, AFTER_VERB, AT_HOME, BEFORE_VERB, CHANCE, CLOCKS, CURRENT, CURSORS, FETCHING_HOME,
    FILLERS, HANDED, HANDING_OVER, JOINS, KEEPING, LIGHT, LIGHT_VERBS, NEGATIONS, OUTSIDE,
    PUT_AWAY, QUEUED, READING_NOUNS, RETRIEVING, RUNS, SHAPES, TIMES, each,
};
use super::{BUCKETS, bucket};

/// One list a word may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::infer) enum Role {
    AfterNoun,
    AfterVerb,
    AtHome,
    BeforeVerb,
    Chance,
    Clock,
    Current,
    Cursor,
    FetchesHome,
    Filler,
    Handed,
    HandsOver,
    Join,
    Keeps,
    Light,
    LightVerb,
    Negation,
    Outside,
    PutAway,
    Queued,
    ReadingNoun,
    Retrieves,
    Runs,
    Shape,
    Time,
}

const LISTS: &[(Role, &[&str])] = &[
    (Role::AfterNoun, AFTER_NOUN),
    (Role::AfterVerb, AFTER_VERB),
    (Role::AtHome, AT_HOME),
    (Role::BeforeVerb, BEFORE_VERB),
    (Role::Chance, CHANCE),
    (Role::Clock, CLOCKS),
    (Role::Current, CURRENT),
    (Role::Cursor, CURSORS),
    (Role::FetchesHome, FETCHING_HOME),
    (Role::Filler, FILLERS),
    (Role::Handed, HANDED),
    (Role::HandsOver, HANDING_OVER),
    (Role::Join, JOINS),
    (Role::Keeps, KEEPING),
    (Role::Light, LIGHT),
    (Role::LightVerb, LIGHT_VERBS),
    (Role::Negation, NEGATIONS),
    (Role::Outside, OUTSIDE),
    (Role::PutAway, PUT_AWAY),
    (Role::Queued, QUEUED),
    (Role::ReadingNoun, READING_NOUNS),
    (Role::Retrieves, RETRIEVING),
    (Role::Runs, RUNS),
    (Role::Shape, SHAPES),
    (Role::Time, TIMES),
];

/// All lists a word is in, and the word as the lists spell it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::infer) struct Roles {
    word: &'static str,
    bits: u32,
}

impl Roles {
    /// Looks a word up, in any case.
    pub(in crate::infer) fn of(word: &str) -> Self {
        static INDEX: LazyLock<Vec<Vec<Roles>>> = LazyLock::new(Roles::index);
        INDEX
            .get(bucket(word, word.len()))
            .into_iter()
            .flatten()
            .find(|known| known.word.eq_ignore_ascii_case(word))
            .copied()
            .unwrap_or_default()
    }

    /// Says whether the word is in the list.
    pub(in crate::infer) const fn has(self, role: Role) -> bool {
        self.bits & Self::bit(role) != 0
    }

    /// Returns the word if it is in the list.
    pub(in crate::infer) fn word_if(self, role: Role) -> Option<&'static str> {
        self.has(role).then_some(self.word)
    }

    const fn bit(role: Role) -> u32 {
        1 << role as u32
    }

    fn index() -> Vec<Vec<Self>> {
        let mut index: Vec<Vec<Self>> = vec![Vec::new(); BUCKETS];
        for (role, lines) in LISTS {
            for word in each(lines) {
                let Some(bucket) = index.get_mut(bucket(word, word.len())) else {
                    continue;
                };
                match bucket.iter_mut().find(|known| known.word == word) {
                    Some(known) => known.bits |= Self::bit(*role),
                    None => bucket.push(Self {
                        word,
                        bits: Self::bit(*role),
                    }),
                }
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_in_its_lists_and_no_other() {
        for (role, lines) in LISTS {
            for word in each(lines) {
                let roles = Roles::of(&word.to_ascii_uppercase());
                assert_eq!(roles.word_if(*role), Some(word), "{role:?}");
                for (other, lines) in LISTS {
                    let listed = each(lines).any(|known| known == word);
                    assert_eq!(roles.has(*other), listed, "{word} {other:?}");
                }
            }
        }
        for word in ["", "nothing-known", "é", "9"] {
            assert!(LISTS.iter().all(|(role, _)| !Roles::of(word).has(*role)));
        }
    }
}
