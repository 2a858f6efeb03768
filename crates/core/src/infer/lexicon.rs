//! The verbs, and what each means in the name of a tool.
//!
//! The words are data, in `lexicon/words.txt`. An operator adds words or changes their meaning with
//! [`Lexicon::with`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::InvalidValue;

mod kind;
mod roles;
pub(super) mod words;

pub use kind::VerbKind;
pub(super) use roles::{Role, Roles};

/// How a word behaves in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A verb wherever it stands.
    Verb,
    /// A verb as the first word.
    First,
    /// A verb or a noun as the first word.
    Either,
    /// A noun, unless there is no other verb.
    Noun,
    /// A verb in prose, nothing in a name.
    Prose,
}

/// A word: borrowed from the lists, or owned if an operator added it.
pub(crate) type Word = Cow<'static, str>;

/// One verb of the lexicon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(super) word: Word,
    pub(super) kind: VerbKind,
    pub(crate) usage: Use,
}

impl Verb {
    pub(super) fn is(&self, word: &str) -> bool {
        self.word == word
    }

    pub(super) fn has(&self, role: Role) -> bool {
        Roles::of(&self.word).has(role)
    }
}

/// The verbs inference knows, each with what it does to the world.
///
/// ```
/// use callward_core::infer::{Inference, Lexicon, RuleSet, Subject, VerbKind};
///
/// let lexicon = Lexicon::standard().clone().with(VerbKind::Delete, "void")?;
/// let inference = Inference { rules: RuleSet::Standard, lexicon: &lexicon };
/// let hints = inference.infer(&Subject::new("void_invoice")).annotations;
/// assert_eq!(hints.destructive_hint, Some(true));
/// # Ok::<(), callward_core::InvalidValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexicon {
    /// By the word in lower case.
    verbs: HashMap<String, Verb>,
    /// Verbs that read some things and change others, each with what it reads.
    reading: Vec<(Verb, &'static [&'static str])>,
    /// Verbs that read, but write where these words are.
    writing: Vec<(&'static str, &'static [&'static str])>,
    /// First words of a question: a tool that asks one reads.
    questions: Vec<Verb>,
}

impl Lexicon {
    /// Returns the words that come with this crate.
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Lexicon> = LazyLock::new(Lexicon::listed);
        &STANDARD
    }

    /// Adds a verb, in its base form; one that is known gets another meaning. It counts as a verb
    /// wherever it stands in a name, and as the first word of a description in its other forms too.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if it is not one word of letters.
    pub fn with(mut self, kind: VerbKind, word: &str) -> Result<Self, InvalidValue> {
        if word.is_empty() || !word.chars().all(char::is_alphabetic) {
            return Err(InvalidValue::new(format!(
                "{word:?} is not a single word: expected letters only, in the base form (`void`, \
                 not `voids`)"
            )));
        }
        let word = lower(word);
        let verb = Verb {
            word: word.clone().into(),
            kind,
            usage: Use::Verb,
        };
        self.verbs.insert(word, verb);
        Ok(self)
    }

    /// Returns a verb in its base form, from a word of any form; `None` if it is not known.
    pub fn base(&self, word: &str) -> Option<&str> {
        self.find_inflected(word).map(|verb| &*verb.word)
    }

    /// Takes a verb out: to inference it says nothing afterwards.
    #[must_use]
    pub fn without(mut self, verb: &str) -> Self {
        self.verbs.remove(&lower(verb));
        self
    }

    fn listed() -> Self {
        let verb = |word: &'static str, kind, usage| Verb {
            word: word.into(),
            kind,
            usage,
        };
        let read = |word| verb(word, VerbKind::Read, Use::Verb);
        let of_kind = words::BY_KIND.iter().flat_map(|(kind, name)| {
            let verb = move |word: &&'static str| verb(word, *kind, words::usage(word));
            words::list(name).iter().map(verb)
        });
        Self {
            verbs: of_kind
                .map(|verb| (verb.word.clone().into_owned(), verb))
                .collect(),
            reading: words::with_objects("reading ")
                .map(|(word, objects)| (read(word), objects))
                .collect(),
            writing: words::with_objects("writing ").collect(),
            questions: words::list("questions").iter().copied().map(read).collect(),
        }
    }

    /// Finds the first word of a question: `whether`, `is_open`.
    pub(super) fn question(&self, word: &str) -> Option<&Verb> {
        self.questions.iter().find(|verb| verb.is(&lower(word)))
    }

    /// Finds a verb that reads because of what it is about: `resolve_library_id`.
    pub(super) fn find_with_object(&self, word: &str, object: &str) -> Option<&Verb> {
        self.reading
            .iter()
            .find(|(verb, objects)| {
                verb.is(&lower(word)) && objects.contains(&lower(object).as_str())
            })
            .map(|(verb, _)| verb)
    }

    /// Returns this word if a verb writes because of it: `fetch`, of version control.
    pub(super) fn writes_with(&self, verb: &Verb, word: &str) -> Option<&'static str> {
        let objects = self.writing.iter().find(|(name, _)| verb.is(name))?.1;
        objects
            .iter()
            .copied()
            .find(|object| word.eq_ignore_ascii_case(object))
    }

    /// Finds a word of a name: its base form, in any case.
    pub(crate) fn find(&self, word: &str) -> Option<&Verb> {
        self.find_base(word).filter(|verb| verb.usage != Use::Prose)
    }

    fn find_base(&self, word: &str) -> Option<&Verb> {
        self.verbs.get(&lower(word))
    }

    /// Finds a word as prose has it: `delete`, `deletes`, `deleting`. Not `deleted`: in prose that
    /// is an adjective more often than not.
    pub(super) fn find_inflected(&self, word: &str) -> Option<&Verb> {
        if let Some(verb) = self.find_base(word) {
            return Some(verb);
        }
        if let Some(base) = stem(word, "ies") {
            return self.with_ending(base, "y");
        }
        if let Some(base) = stem(word, "ing") {
            return self
                .find_base(base)
                .or_else(|| self.with_ending(base, "e"))
                .or_else(|| self.find_base(base.get(..base.len().checked_sub(1)?)?));
        }
        let mut bases = ["s", "es"].into_iter().filter_map(|end| stem(word, end));
        bases.find_map(|base| self.find_base(base))
    }

    /// Returns `true` if a word of prose names a reading: `search`, `aggregation`.
    pub(super) fn is_read_noun(&self, word: &str) -> bool {
        let noun = || self.with_ending(stem(word, "ion")?, "e");
        Roles::of(word).has(Role::ReadingNoun)
            || self
                .find_inflected(word)
                .or_else(noun)
                .is_some_and(|verb| verb.kind == VerbKind::Read)
    }

    fn with_ending(&self, base: &str, ending: &str) -> Option<&Verb> {
        self.verbs.get(&(lower(base) + ending))
    }
}

/// Takes an ending, in any case, off a word.
fn stem<'w>(word: &'w str, ending: &str) -> Option<&'w str> {
    let (stem, tail) = word.split_at_checked(word.len().checked_sub(ending.len())?)?;
    tail.eq_ignore_ascii_case(ending).then_some(stem)
}

/// Returns a word as the lexicon spells it. The ending of a word changes no other letter.
fn lower(word: &str) -> String {
    word.chars().flat_map(char::to_lowercase).collect()
}

/// Returns `true` if a word, in any case, is in the list.
pub(super) fn is(word: &str, role: Role) -> bool {
    Roles::of(word).has(role)
}

/// Returns `true` if what the verb is about is gone afterwards. An added word is not in the list
/// and counts as the worse.
pub(super) fn takes_away(word: &Word) -> bool {
    match word {
        Word::Borrowed(word) => {
            Roles::of(word).has(Role::PutAway)
                || Lexicon::standard()
                    .find_base(word)
                    .is_some_and(|verb| verb.kind.is_destructive())
        }
        Word::Owned(_) => true,
    }
}

/// Returns `true` if a word ends as a verb that has become a noun does: `listing`.
pub(super) fn is_gerund(word: &str) -> bool {
    stem(word, "ing").is_some()
}

/// Returns `true` if the word after a verb turns it into another: `check_in`, `get_rid_of`.
pub(super) fn is_turned(word: &str, next: &str) -> bool {
    words::list("turned")
        .iter()
        .filter_map(|pair| pair.split_once('+'))
        .any(|(verb, after)| verb.eq_ignore_ascii_case(word) && after.eq_ignore_ascii_case(next))
}

#[cfg(test)]
mod tests;
