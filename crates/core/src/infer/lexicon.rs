//! The verbs, and what calling a tool by one of them means.
//!
//! The words are data, in one file ([`words`]); an operator may add others, or give one another
//! meaning, without touching the lists ([`Lexicon::with`]).

use std::fmt;
use std::sync::{Arc, LazyLock};

mod kind;
mod roles;
pub(super) mod words;

pub use kind::VerbKind;
pub(super) use roles::{Role, Roles};

use words::{QUESTIONS, TURNED};

/// How a word behaves in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A verb wherever it stands.
    Verb,
    /// A verb when it leads.
    First,
    /// A verb or a noun when it leads.
    Either,
    /// A noun, unless there is no other verb.
    Noun,
    /// A verb in prose, nothing in a name.
    Prose,
}

/// A word of the lists, or one an operator added.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Listed(&'static str),
    Added(Arc<str>),
}

impl Word {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Listed(word) => word,
            Self::Added(word) => word,
        }
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Word {}

impl From<&'static str> for Word {
    fn from(word: &'static str) -> Self {
        Self::Listed(word)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One verb of the lexicon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(super) word: Word,
    pub(super) kind: VerbKind,
    pub(crate) usage: Use,
}

impl Verb {
    pub(super) fn is(&self, word: &str) -> bool {
        self.word.as_str() == word
    }

    /// Says whether the verb hands something over, unless it puts it somewhere: `download`.
    pub(super) fn hands_over(&self) -> bool {
        Roles::of(self.word.as_str()).has(Role::HandsOver)
    }

    /// Says whether the verb looks something up: `get`.
    pub(super) fn retrieves(&self) -> bool {
        Roles::of(self.word.as_str()).has(Role::Retrieves)
    }

    /// Says whether a verb that hands over must say so, since it may as well put it somewhere.
    pub(super) fn fetches_home(&self) -> bool {
        Roles::of(self.word.as_str()).has(Role::FetchesHome)
    }

    /// Says whether the verb leaves to the next words what is done: `runs a search`.
    pub(super) fn is_run(&self) -> bool {
        Roles::of(self.word.as_str()).has(Role::Runs)
    }
}

/// The verbs inference knows, each with what it does to the world.
///
/// ```
/// use callward_core::infer::{Inference, Lexicon, RuleSet, Subject, VerbKind};
///
/// let lexicon = Lexicon::standard().clone().with(VerbKind::Delete, "void")?;
/// let inference = Inference::new(RuleSet::Standard).with_lexicon(&lexicon);
/// let hints = inference.infer(&Subject::new("void_invoice")).into_annotations();
/// assert_eq!(hints.destructive_hint, Some(true));
/// # Ok::<(), callward_core::infer::InvalidWord>(())
/// ```
#[derive(Debug, Clone)]
pub struct Lexicon {
    /// By first letter and length, see [`bucket`].
    index: Vec<Vec<Verb>>,
    /// Verbs that read some things and change others, each with what it reads.
    reading: Vec<(Verb, &'static str)>,
    /// First words of a question: whoever asks one reads.
    questions: Vec<Verb>,
}

/// A word that cannot be added to a lexicon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidWord {
    word: String,
}

impl fmt::Display for InvalidWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no single word: expected letters only, in the base form (`void`, not `voids`)",
            self.word
        )
    }
}

impl std::error::Error for InvalidWord {}

/// The letters of the alphabet, and one for what begins with none of them.
const LETTERS: usize = 27;
/// Words of this length and longer ones share a bucket.
const LONGEST: usize = 15;
/// The bucket of what is not ASCII: other cases of such a word may have another length.
const OTHERS: usize = LETTERS * (LONGEST + 1);
const BUCKETS: usize = OTHERS + 1;

impl Lexicon {
    /// Returns the words that come with this crate.
    #[must_use]
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Lexicon> = LazyLock::new(Lexicon::listed);
        &STANDARD
    }

    /// Adds a verb, in its base form; one that is known gets another meaning. It counts as a verb
    /// wherever it stands in a name, and as the first word of a description in its other forms too.
    ///
    /// # Errors
    ///
    /// [`InvalidWord`] if it is not one word of letters.
    pub fn with(mut self, kind: VerbKind, word: &str) -> Result<Self, InvalidWord> {
        if word.is_empty() || !word.chars().all(char::is_alphabetic) {
            return Err(InvalidWord { word: word.into() });
        }
        let word: Arc<str> = word.to_lowercase().into();
        if let Some(bucket) = self.index.get_mut(bucket(&word, word.len())) {
            bucket.retain(|verb| !same(verb.word.as_str(), &word));
            bucket.push(Verb {
                word: Word::Added(word),
                kind,
                usage: Use::Verb,
            });
        }
        Ok(self)
    }

    fn listed() -> Self {
        let mut index = vec![Vec::new(); BUCKETS];
        for (kind, lines) in words::BY_KIND {
            for word in words::each(lines) {
                if let Some(bucket) = index.get_mut(bucket(word, word.len())) {
                    bucket.push(Verb {
                        word: word.into(),
                        kind: *kind,
                        usage: words::usage(word),
                    });
                }
            }
        }
        let read = |word: &'static str| Verb {
            word: word.into(),
            kind: VerbKind::Read,
            usage: Use::Verb,
        };
        Self {
            index,
            reading: words::READING
                .iter()
                .map(|&(word, objects)| (read(word), objects))
                .collect(),
            questions: words::each(QUESTIONS).map(read).collect(),
        }
    }

    /// Finds the first word of a question: `whether`, `is_open`.
    pub(super) fn question(&self, word: &str) -> Option<&Verb> {
        self.questions
            .iter()
            .find(|verb| same(verb.word.as_str(), word))
    }

    /// Finds a verb that reads because of what it is about: `resolve_library_id`.
    pub(super) fn find_with_object(&self, word: &str, object: &str) -> Option<&Verb> {
        self.reading
            .iter()
            .find(|(verb, objects)| {
                same(verb.word.as_str(), word)
                    && objects.split(' ').any(|known| same(known, object))
            })
            .map(|(verb, _)| verb)
    }

    /// Finds a word of a name: its base form, in any case.
    pub(crate) fn find(&self, word: &str) -> Option<&Verb> {
        self.find_base(word).filter(|verb| verb.usage != Use::Prose)
    }

    fn find_base(&self, word: &str) -> Option<&Verb> {
        let known = self.index.get(bucket(word, word.len()))?;
        if word.is_ascii() {
            let same = |verb: &&Verb| verb.word.as_str().eq_ignore_ascii_case(word);
            return known.iter().find(same);
        }
        known.iter().find(|verb| same(verb.word.as_str(), word))
    }

    /// Finds a word as prose has it: `delete`, `deletes`, `deleting`. Not `deleted`: in prose that is
    /// an adjective more often than not.
    pub(super) fn find_inflected(&self, word: &str) -> Option<&Verb> {
        if let Some(verb) = self.find_base(word) {
            return Some(verb);
        }
        let stem = |ending: &str| {
            let at = word.len().checked_sub(ending.len())?;
            let (stem, tail) = (word.get(..at)?, word.get(at..)?);
            tail.eq_ignore_ascii_case(ending).then_some(stem)
        };
        if let Some(base) = stem("ies") {
            return self.with_ending(base, "y");
        }
        if let Some(base) = stem("ing") {
            return self
                .find_base(base)
                .or_else(|| self.with_ending(base, "e"))
                .or_else(|| self.find_base(base.get(..base.len().checked_sub(1)?)?));
        }
        stem("s")
            .and_then(|base| self.find_base(base))
            .or_else(|| stem("es").and_then(|base| self.find_base(base)))
    }

    /// Says whether a word of prose names a reading: `search`, `aggregation`.
    pub(super) fn is_read_noun(&self, word: &str) -> bool {
        let noun = || {
            let at = word.len().checked_sub("ion".len())?;
            let stem = word
                .get(at..)?
                .eq_ignore_ascii_case("ion")
                .then(|| word.get(..at))?;
            self.with_ending(stem?, "e")
        };
        Roles::of(word).has(Role::ReadingNoun)
            || self
                .find_inflected(word)
                .or_else(noun)
                .is_some_and(|verb| verb.kind == VerbKind::Read)
    }

    fn with_ending(&self, base: &str, ending: &str) -> Option<&Verb> {
        let length = base.len().saturating_add(ending.len());
        self.index.get(bucket(base, length))?.iter().find(|verb| {
            verb.word
                .as_str()
                .strip_suffix(ending)
                .is_some_and(|stem| same(stem, base))
        })
    }
}

/// Returns the place of the bucket of words that begin as this one and have this length.
fn bucket(start: &str, length: usize) -> usize {
    if !start.is_ascii() {
        return OTHERS;
    }
    let letter = start
        .bytes()
        .next()
        .map(|byte| byte.to_ascii_lowercase())
        .filter(u8::is_ascii_lowercase)
        .map_or(LETTERS - 1, |byte| usize::from(byte.wrapping_sub(b'a')));
    letter * (LONGEST + 1) + length.min(LONGEST)
}

/// Compares a word of the lexicon, in lower case, with one of a name or of prose.
fn same(known: &str, word: &str) -> bool {
    known.eq_ignore_ascii_case(word)
        || (!word.is_ascii() && known.chars().eq(word.chars().flat_map(char::to_lowercase)))
}

pub(crate) fn is_join(word: &str) -> bool {
    Roles::of(word).has(Role::Join)
}

/// Says whether what the verb is about is gone afterwards. An added word is not looked up: it is
/// taken for the worse.
pub(super) fn takes_away(word: &Word) -> bool {
    match word {
        Word::Listed(word) => {
            Roles::of(word).has(Role::PutAway)
                || Lexicon::standard()
                    .find_base(word)
                    .is_some_and(|verb| verb.kind.is_destructive())
        }
        Word::Added(_) => true,
    }
}

pub(crate) fn is_filler(word: &str) -> bool {
    Roles::of(word).has(Role::Filler)
}

/// Says whether a word before a verb adds nothing to it: `take_screenshot`.
pub(super) fn is_light(word: &str) -> bool {
    Roles::of(word).has(Role::Light)
}

/// Says whether a word ends as a verb that has become a noun does: `listing`.
pub(super) fn is_gerund(word: &str) -> bool {
    word.len()
        .checked_sub("ing".len())
        .and_then(|at| word.get(at..))
        .is_some_and(|ending| ending.eq_ignore_ascii_case("ing"))
}

/// Says whether the word after a verb turns it into another: `check_in`, `get_rid_of`.
pub(super) fn is_turned(word: &str, next: &str) -> bool {
    TURNED
        .iter()
        .any(|(verb, after)| verb.eq_ignore_ascii_case(word) && contains(after, next))
}

pub(super) fn is_negation(word: &str) -> bool {
    Roles::of(word).has(Role::Negation)
}

fn contains(list: &[&str], word: &str) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
