//! Inference: hints from a tool's name and description.
//!
//! Few servers declare hints, so gaps are filled from the name, the first sentence of the
//! description and the names of arguments. This is a guess, and wrong guesses differ in cost. If a
//! read is treated as a write, a cache hit is lost; if a write is treated as a read, a payment may
//! run twice. So **a conclusion that tightens may be weak, and one that relaxes must be strong.**
//! Each conclusion carries its [`Strength`] and its reason ([`Evidence`]);
//! [`resolve`](crate::resolve) decides what counts.
//!
//! - [`RuleSet::Standard`] reads the *leading verb of the name*. It splits the name into words in
//!   any style, removes the server's own prefix, and looks up the first verb of a lexicon. Reasons
//!   for doubt turn strong into weak, or a read into a write: a later write verb
//!   (`search_and_delete`), a lead that is as often a noun (`log_add`), a description that begins
//!   with another kind of verb. It ignores read verbs in the rest of the description, because on
//!   published tools those make writes look like reads.
//! - [`RuleSet::Neurolink`] applies the published keyword rules of NeuroLink, for users who migrate
//!   from it and want the same answers.
//!
//! Some reads answer differently each time without a write. For them there is a [`Volatility`]
//! instead of a hint, and their answers are never cached.
//!
//! Inference is deterministic and depends on neither the locale nor a clock. What a tool reads or
//! changes is inferred from that tool alone; other tools of its server only show how the server
//! uses `openWorldHint` and `destructiveHint` ([`Inference::infer_all`]).

mod description;
mod evidence;
pub(crate) mod lexicon;
mod neurolink;
mod pairing;
mod siblings;
mod standard;
pub(crate) mod words;

pub use evidence::{Evidence, Inferred, Strength, Volatile, Volatility};
pub use lexicon::{Lexicon, VerbKind};
pub use pairing::Readers;
pub use siblings::Listed;

use serde_json::value::RawValue;

use crate::{ServerId, ToolDefinition};
use siblings::Habits;

words! {
    /// Which rules draw the conclusions.
    #[non_exhaustive]
    RuleSet {
        /// The first verb of the name, with reasons for doubt.
        Standard = "standard",
        /// NeuroLink's keywords, anywhere in name or description.
        Neurolink = "neurolink",
    } default Standard
}

impl RuleSet {
    /// Draws conclusions about one tool, by these rules and the standard words.
    ///
    /// Never fails: a missing description is an empty one.
    ///
    /// ```
    /// use callward_core::infer::{RuleSet, Strength, Subject};
    /// use callward_core::Field;
    ///
    /// let inferred = RuleSet::Standard.infer(&Subject::new("deleteUser"));
    /// assert_eq!(inferred.annotations.destructive_hint, Some(true));
    ///
    /// let evidence = inferred.evidence_for(Field::Destructive).unwrap();
    /// assert_eq!(evidence.strength, Strength::Strong);
    /// assert_eq!(evidence.to_string(), "the name leads with `delete`");
    /// ```
    pub fn infer(self, subject: &Subject<'_>) -> Inferred {
        let lexicon = Lexicon::standard();
        let rules = self;
        Inference { rules, lexicon }.infer(subject)
    }
}

/// The parts of one tool that inference may read.
#[must_use]
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "everything that inference reads")]
pub struct Subject<'a> {
    /// The tool's name, as its server spells it.
    pub name: &'a str,
    /// The description.
    pub description: Option<&'a str>,
    /// The server's id, so that its name can be taken off the tool's.
    pub server: Option<&'a str>,
    /// The schema of the arguments, as raw JSON.
    pub input_schema: Option<&'a RawValue>,
}

impl<'a> Subject<'a> {
    /// Starts with a name and nothing else.
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            description: None,
            server: None,
            input_schema: None,
        }
    }

    /// Takes everything from a listed tool.
    pub fn of(tool: &'a ToolDefinition, server: Option<&'a ServerId>) -> Self {
        Self {
            name: tool.name.as_str(),
            description: tool.description.as_deref(),
            server: server.map(ServerId::as_str),
            input_schema: tool.input_schema.as_deref(),
        }
    }
}

/// A rule set, and the words it knows: what draws the conclusions.
///
/// ```
/// use callward_core::Annotations;
/// use callward_core::infer::{Inference, Lexicon, Listed, RuleSet, Subject};
///
/// let closed = Annotations::default().with_open_world(false);
/// let nothing = Annotations::default();
/// let tools = [("get_lead", &closed), ("get_deal", &nothing)];
/// let tools = tools.map(|(name, declared)| Listed { subject: Subject::new(name), declared });
/// let (rules, lexicon) = (RuleSet::Standard, Lexicon::standard());
/// let inferred = Inference { rules, lexicon }.infer_all(&tools);
/// assert_eq!(inferred[1].annotations.open_world_hint, Some(false));
/// ```
#[must_use]
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a rule set and its words")]
pub struct Inference<'l> {
    /// The rules.
    pub rules: RuleSet,
    /// The words. The `neurolink` rules have their own, and take no others.
    pub lexicon: &'l Lexicon,
}

impl Inference<'_> {
    /// Draws conclusions about one tool from that tool alone.
    pub fn infer(&self, subject: &Subject<'_>) -> Inferred {
        match self.rules {
            RuleSet::Standard => standard::infer(subject, self.lexicon),
            RuleSet::Neurolink => neurolink::infer(subject.name, subject.description.unwrap_or("")),
        }
    }

    /// Draws conclusions about all tools of one server, in their order: what they have in common
    /// counts too. Under the `neurolink` rules nothing in common counts.
    pub fn infer_all(&self, tools: &[Listed<'_>]) -> Vec<Inferred> {
        let mut all: Vec<Inferred> = tools.iter().map(|tool| self.infer(&tool.subject)).collect();
        if self.rules != RuleSet::Standard {
            return all;
        }
        siblings::share_the_world(&mut all);
        siblings::share_the_agreement(&mut all);
        let habits = Habits::of(all.iter().zip(tools.iter().map(|tool| tool.declared)));
        for inferred in &mut all {
            habits.apply(inferred);
        }
        all
    }
}
