//! A conclusion, its strength and its reason.

use std::fmt;

use super::lexicon::{self, VerbKind, Word};
use crate::{Annotations, Complexity, Field};

words! {
    /// The strength of a conclusion.
    #[expect(clippy::exhaustive_enums, reason = "a conclusion may relax a rule or it may not")]
    Strength {
        /// It may make a plan stricter, never laxer.
        Weak = "weak",
        /// Nothing contradicts it: it may make a plan laxer, and contradict a declared hint.
        Strong = "strong",
    }
}

impl Strength {
    pub(super) const fn strong_if(strong: bool) -> Self {
        if strong { Self::Strong } else { Self::Weak }
    }
}

/// Why one field was concluded.
///
/// Its `Display` is the word or rule that it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// The field the conclusion is about.
    pub field: Field,
    /// How strong it is.
    pub strength: Strength,
    reason: Reason,
}

impl Evidence {
    /// Returns `true` if it means permanent removal, as `delete` does and `update` does not. A verb
    /// that may do anything may remove, too.
    pub(crate) fn takes_away(&self) -> bool {
        match &self.reason {
            Reason::NameLeads(word)
            | Reason::NameSays(word)
            | Reason::NameAndDescription(word)
            | Reason::DescriptionLeads(word)
            | Reason::Chooses(word) => lexicon::takes_away(word),
            _ => self.field == Field::Destructive,
        }
    }

    /// Returns `true` if it rests on more than the kind of verb, which other tools share.
    pub(super) const fn is_of_this_tool_alone(&self) -> bool {
        matches!(
            self.reason,
            Reason::DescriptionWarns(_)
                | Reason::Agrees(_)
                | Reason::Chooses(_)
                | Reason::FreeForm(_)
        )
    }

    /// Returns `true` if its only support is that nothing contradicts it.
    pub(super) fn is_default(&self) -> bool {
        self.reason == Reason::MayReachOut
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

/// The rules that can decide, each with its word. The text is only built on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first word of the name is this verb.
    NameLeads(Word),
    /// The name has this verb, though not first.
    NameSays(Word),
    /// The name has this verb, and the description begins with one of the same kind.
    NameAndDescription(Word),
    /// The description begins with this verb.
    DescriptionLeads(Word),
    /// The description has this phrase.
    DescriptionWarns(&'static str),
    /// No sign that the tool stays within its server.
    MayReachOut,
    /// The name or the description mentions something outside of the server.
    ReachesOut(&'static str),
    /// An argument of it may be this verb.
    Chooses(Word),
    /// What runs is an argument of this name.
    FreeForm(&'static str),
    /// A verb that reads elsewhere writes where this word is.
    WritesHere(&'static str),
    /// An argument or the description says where the result is put.
    Keeps(&'static str),
    /// An argument by which the caller agrees to a loss.
    Agrees(&'static str),
    /// Most other tools of the server seem to meet an open world.
    SiblingsReachOut,
    /// Most writes of the server have an argument by which the caller agrees.
    SiblingsAgree,
    /// Most other tools of the server that declare it agree.
    Siblings,
    /// Concluded from read-only.
    ReadsOnly,
    /// A NeuroLink keyword in the name.
    KeywordInName(&'static str),
    /// A NeuroLink keyword in the description.
    KeywordInDescription(&'static str),
    /// No NeuroLink keyword for complexity.
    NoKeyword,
    /// The description is longer than NeuroLink's limit.
    LongDescription,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameLeads(word) => write!(f, "the name leads with `{word}`"),
            Self::NameSays(word) => write!(f, "the name says `{word}`"),
            Self::NameAndDescription(word) => {
                write!(f, "the name says `{word}`, and the description agrees")
            }
            Self::DescriptionLeads(word) => write!(f, "the description begins with `{word}`"),
            Self::DescriptionWarns(phrase) => write!(f, "the description says `{phrase}`"),
            Self::MayReachOut => f.write_str("no sign that its world is closed"),
            Self::ReachesOut(word) => write!(f, "it mentions `{word}`"),
            Self::Chooses(word) => write!(f, "an argument may tell it to `{word}`"),
            Self::FreeForm(word) => write!(f, "what it does is decided by its `{word}`"),
            Self::WritesHere(word) => write!(f, "with `{word}` its verb writes"),
            Self::Keeps(place) => write!(f, "the result is put somewhere: it says `{place}`"),
            Self::Agrees(word) => write!(f, "the caller confirms it by `{word}`"),
            Self::SiblingsReachOut => f.write_str("most of the server's tools may reach out"),
            Self::SiblingsAgree => f.write_str("most of the server's writes ask for consent"),
            Self::Siblings => f.write_str("the server's other tools declare it so"),
            Self::ReadsOnly => f.write_str("reading again changes nothing"),
            Self::KeywordInName(word) => write!(f, "keyword `{word}` in the name"),
            Self::KeywordInDescription(word) => write!(f, "keyword `{word}` in the description"),
            Self::NoKeyword => f.write_str("no keyword says otherwise"),
            Self::LongDescription => f.write_str("the description is long"),
        }
    }
}

words! {
    /// Why the answer to a read must be fresh.
    #[non_exhaustive]
    Volatility {
        /// It reads state that changes by itself: a clock, a random source, the progress of a job.
        /// Reading again is harmless, but a cached answer is wrong.
        Clock = "clock",
        /// Each call moves on: the next page, the next message. Reading again skips something, so a
        /// call that may have run is not retried either.
        Cursor = "cursor",
    }
}

/// A read whose answer must be fresh, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volatile {
    /// Why.
    pub volatility: Volatility,
    /// The word of its name or description that says so.
    word: &'static str,
}

impl Volatile {
    pub(super) const fn new(volatility: Volatility, word: &'static str) -> Self {
        Self { volatility, word }
    }

    /// Returns `true` if each call moves on.
    pub(crate) const fn moves_on(&self) -> bool {
        matches!(self.volatility, Volatility::Cursor)
    }
}

/// The reason, in a few words.
impl fmt::Display for Volatile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word;
        match self.volatility {
            Volatility::Clock => write!(f, "`{word}` changes by itself"),
            Volatility::Cursor => write!(f, "each call moves on: it says `{word}`"),
        }
    }
}

/// Hints concluded about one tool, with the evidence for each.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Inferred {
    /// The hints concluded, weak ones included.
    pub annotations: Annotations,
    /// All evidence, in the order it was found.
    pub evidence: Vec<Evidence>,
    /// Why an answer of the tool must be fresh, should it read; `None` if nothing says so.
    pub volatile: Option<Volatile>,
    /// The verb that was found.
    pub(super) kind: Option<VerbKind>,
}

impl Inferred {
    /// Returns the evidence for a field; `None` if nothing was concluded about it.
    pub fn evidence_for(&self, field: Field) -> Option<&Evidence> {
        self.evidence.iter().find(|entry| entry.field == field)
    }

    /// Returns `true` if it loses something only because the caller agrees to that.
    pub(super) fn agrees(&self) -> bool {
        let evidence = self.evidence_for(Field::Destructive);
        evidence.is_some_and(|evidence| matches!(evidence.reason, Reason::Agrees(_)))
    }

    /// Returns the evidence for a field that says yes or no, if it is strong and says this.
    pub(crate) fn firm(&self, field: Field, value: bool) -> Option<&Evidence> {
        let hints = &self.annotations;
        let concluded = match field {
            Field::ReadOnly => hints.read_only_hint,
            Field::Destructive => hints.destructive_hint,
            _ => None,
        };
        let evidence = self
            .evidence_for(field)
            .filter(|_| concluded == Some(value));
        evidence.filter(|evidence| evidence.strength == Strength::Strong)
    }

    /// Returns a hint, if it is one that says yes or no.
    fn flag(&mut self, field: Field) -> Option<&mut Option<bool>> {
        let hints = &mut self.annotations;
        match field {
            Field::ReadOnly => Some(&mut hints.read_only_hint),
            Field::Destructive => Some(&mut hints.destructive_hint),
            Field::Idempotent => Some(&mut hints.idempotent_hint),
            Field::OpenWorld => Some(&mut hints.open_world_hint),
            Field::RequiresConfirmation => Some(&mut hints.requires_confirmation),
            _ => None,
        }
    }

    /// Takes back what was concluded about a hint that says yes or no.
    pub(super) fn drop_hint(&mut self, field: Field) {
        if let Some(flag) = self.flag(field) {
            *flag = None;
            self.evidence.retain(|entry| entry.field != field);
        }
    }

    /// Concludes a hint that says yes or no.
    pub(super) fn set(&mut self, field: Field, value: bool, strength: Strength, reason: Reason) {
        if let Some(flag) = self.flag(field) {
            *flag = Some(value);
            self.note(field, strength, reason);
        }
    }

    pub(super) fn complexity(&mut self, value: Complexity, strength: Strength, reason: Reason) {
        self.annotations.complexity = Some(value);
        self.note(Field::Complexity, strength, reason);
    }

    fn note(&mut self, field: Field, strength: Strength, reason: Reason) {
        self.evidence.push(Evidence {
            field,
            strength,
            reason,
        });
    }
}
