//! The conclusions about one tool, before they become hints.

use super::Look;
use super::named::Named;
use crate::Field;
use crate::infer::evidence::Reason;
use crate::infer::lexicon::words::QUERY;
use crate::infer::lexicon::{Role, Use, Verb, VerbKind};
use crate::infer::{Inferred, Strength, description};

/// The conclusions, before they become hints.
pub(super) struct Verdict {
    kind: VerbKind,
    idempotent: bool,
    strength: Strength,
    reason: Reason,
    /// A reason of its own to call the tool destructive, never a strong one.
    loses: Option<Reason>,
}

impl Verdict {
    /// Weighs the name against the description.
    pub(super) fn of_name(named: &Named<'_>, look: &Look<'_, '_>) -> Option<Self> {
        let prose = look.prose;
        let worst = prose.worst();
        if (named.may_run_a_read || named.reads_last)
            && named.alone
            && let Some(verdict) = Self::of_a_run(look)
        {
            return Some(verdict);
        }
        if named.kind != VerbKind::Read
            && named.may_read()
            && (prose.opens || named.reads_last)
            && let Some(verb) = worst.filter(|verb| verb.kind == VerbKind::Read)
            // what acts may show what it did
            && !(named.leads
                && named.usage != Use::Noun
                && !named.reads_last
                && verb.has(Role::Presents))
        {
            // The description knows which words of the name are nouns.
            let reason = match named.reads {
                Some(read) => Reason::NameAndDescription(read.word.clone()),
                None => Reason::DescriptionLeads(verb.word.clone()),
            };
            return Some(Self::new(VerbKind::Read, Strength::Strong, reason).doubted(verb, look));
        }
        let word = &named.verb.word;
        let reads = named.kind == VerbKind::Read;
        let worst = worst.filter(|verb| !(reads && runs_a_read(named, look, verb)));
        let agrees = match worst {
            Some(verb) => (verb.kind == VerbKind::Read) == reads,
            None => reads && (prose.read_only || prose.later_reads),
        };
        let contradicts = worst.is_some() && !agrees;
        if reads && contradicts {
            return Self::of_prose(look);
        }
        let strong = !contradicts && named.is_firm(agrees, worst.is_none(), prose.opens);
        let verdict = Self {
            kind: named.kind,
            idempotent: named.idempotent,
            strength: Strength::strong_if(strong),
            reason: match (named.leads, agrees) {
                (true, _) => Reason::NameLeads(word.clone()),
                (false, true) => Reason::NameAndDescription(word.clone()),
                (false, false) => Reason::NameSays(word.clone()),
            },
            loses: worst
                .filter(|verb| verb.kind.is_destructive())
                .map(|verb| Reason::DescriptionLeads(verb.word.clone())),
        };
        Some(verdict.doubted(named.verb, look))
    }

    /// What runs something that is said to read: `Executes a read-only query`, `Runs a scan`.
    fn of_a_run(look: &Look<'_, '_>) -> Option<Self> {
        let prose = look.prose;
        let verb = prose.lead.filter(|verb| verb.has(Role::Runs))?;
        let reason = match (prose.read_only, prose.runs_read && prose.opens) {
            (true, _) => Reason::DescriptionWarns("read-only"),
            (false, true) => Reason::DescriptionLeads(verb.word.clone()),
            (false, false) => return None,
        };
        let read = Self::new(VerbKind::Read, Strength::Strong, reason);
        prose.also.is_none().then(|| read.doubted(verb, look))
    }

    /// The description alone. It counts as a read only if it begins with a verb that reads.
    pub(super) fn of_prose(look: &Look<'_, '_>) -> Option<Self> {
        if let Some(verdict) = Self::of_a_run(look) {
            return Some(verdict);
        }
        let verb = look.prose.worst()?;
        let strong = look.prose.opens && verb.kind == VerbKind::Read;
        let strength = Strength::strong_if(strong);
        let reason = Reason::DescriptionLeads(verb.word.clone());
        Some(Self::new(verb.kind, strength, reason).doubted(verb, look))
    }

    const fn new(kind: VerbKind, strength: Strength, reason: Reason) -> Self {
        Self {
            kind,
            idempotent: kind.is_idempotent(),
            strength,
            reason,
            loses: None,
        }
    }

    /// Withdraws a read whose arguments show that it may do more.
    fn doubted(self, verb: &Verb, look: &Look<'_, '_>) -> Self {
        if self.kind != VerbKind::Read {
            return self;
        }
        let weak = |kind, reason| Self::new(kind, Strength::Weak, reason);
        if let Some(program) = look.program(verb) {
            return weak(VerbKind::Change, Reason::FreeForm(program));
        }
        if let Some(word) = look.writes_here(verb) {
            return weak(VerbKind::Change, Reason::WritesHere(word));
        }
        if let Some(choice) = look.choice() {
            return weak(VerbKind::Change, Reason::Chooses(choice));
        }
        if let Some(place) = look.keeps(verb) {
            return weak(VerbKind::Add, Reason::Keeps(place));
        }
        if look.is_open_query(verb) {
            return Self {
                strength: Strength::Weak,
                ..self
            };
        }
        self
    }

    /// Applies the warnings in the whole description.
    fn warned(mut self, description: Option<&str>) -> Self {
        if self.kind != VerbKind::Read && !self.kind.is_destructive() {
            self.loses = self
                .loses
                .or_else(|| description::warning(description?).map(Reason::DescriptionWarns));
        }
        self
    }

    /// Turns the verdict into hints.
    pub(super) fn conclude(self, look: &Look<'_, '_>) -> Inferred {
        let Self {
            kind,
            idempotent,
            mut strength,
            reason,
            loses,
        } = self.warned(look.subject.description);
        let mut inferred = Inferred {
            kind: Some(kind),
            ..Inferred::default()
        };
        if kind == VerbKind::Read {
            let moves_on = look.volatile().is_some_and(|volatile| volatile.moves_on());
            if moves_on && (!look.prose.opens || look.may_take()) {
                // a look at the next one may be what takes it
                strength = Strength::Weak;
            }
            inferred.set(Field::ReadOnly, true, strength, reason);
            if !moves_on {
                inferred.set(Field::Idempotent, true, strength, Reason::ReadsOnly);
            }
            return inferred;
        }
        inferred.set(Field::ReadOnly, false, strength, reason.clone());
        let loses = loses.or_else(|| look.arguments.agreement());
        if kind.is_destructive() {
            inferred.set(Field::Destructive, true, strength, reason.clone());
        } else if let Some(loses) = loses {
            inferred.set(Field::Destructive, true, Strength::Weak, loses);
        } else if kind.may_lose() {
            inferred.set(Field::Destructive, true, Strength::Weak, reason.clone());
        } else if kind == VerbKind::Add {
            inferred.set(Field::Destructive, false, strength, reason.clone());
        }
        if idempotent {
            inferred.set(Field::Idempotent, true, strength, reason);
        }
        inferred
    }
}

/// Returns `true` if a description that begins with `runs` or `executes` may go with a name that
/// reads: `find`, which runs a search. What runs a query is another matter, unless it is said to
/// read only.
fn runs_a_read(named: &Named<'_>, look: &Look<'_, '_>, verb: &Verb) -> bool {
    verb.has(Role::Runs)
        && (look.prose.read_only
            || look.prose.runs_read
            || (look.prose.runs_query
                && named.leads
                && (!named.verb.is(QUERY) || look.asks_a_log())))
}
