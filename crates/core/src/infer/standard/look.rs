//! A tool as the rules see it: its words, its first sentence, its arguments.

use smallvec::SmallVec;

use super::Prose;
use super::schema::{Arguments, Meaning};
use crate::infer::lexicon::words::{QUERY, list};
use crate::infer::lexicon::{Lexicon, Role, Roles, Verb, VerbKind, Word};
use crate::infer::{Subject, Volatile, Volatility, description, words};

/// A tool as the rules see it.
pub(super) struct Look<'a, 'l> {
    pub(super) subject: &'a Subject<'a>,
    /// The words of the name, without those that only say whose tool it is.
    pub(super) name: &'a [&'a str],
    /// The lists those words are in.
    pub(super) roles: SmallVec<[Roles; 8]>,
    /// What its description begins with.
    pub(super) prose: Prose<'l>,
    /// The evidence in its arguments.
    pub(super) arguments: Arguments<'a>,
    pub(super) lexicon: &'l Lexicon,
}

impl Look<'_, '_> {
    /// Finds the argument that decides what the tool does: `query_sql`, or `query` with an argument
    /// `sql`. Such a tool reads or writes depending on that argument.
    pub(super) fn program(&self, verb: &Verb) -> Option<&'static str> {
        if self.prose.read_only {
            None
        } else if verb.is(QUERY) {
            list("programs")
                .iter()
                .copied()
                .find(|program| self.name.iter().any(|own| words::same(own, program)))
                .or_else(|| self.arguments.of(Meaning::Program))
        } else if verb.has(Role::Retrieves) {
            self.arguments.of(Meaning::Statement)
        } else {
            None
        }
    }

    /// Returns `true` if a querying tool describes itself by its name only, where the query may be
    /// one that changes something.
    pub(super) fn is_open_query(&self, verb: &Verb) -> bool {
        let reads = self.prose.opens
            && self
                .prose
                .worst()
                .is_some_and(|verb| verb.kind == VerbKind::Read);
        verb.is(QUERY)
            && self.arguments.of(Meaning::Query).is_some()
            && !reads
            && !self.prose.read_only
    }

    /// Finds a choice among the arguments that writes.
    pub(super) fn choice(&self) -> Option<Word> {
        self.arguments
            .choice(self.lexicon)
            .map(|verb| verb.word.clone())
    }

    /// Finds what says that the result is not handed over but put somewhere: an argument that names
    /// the place, or a description that does. For a verb that hands over by its nature, a file is
    /// enough.
    pub(super) fn keeps(&self, verb: &Verb) -> Option<&'static str> {
        let destination = self.arguments.of(Meaning::Destination);
        if destination.is_some() {
            return destination;
        }
        let says = |role| description::find(self.subject.description?, role);
        if verb.has(Role::HandsOver) {
            let silent = || {
                (verb.has(Role::FetchesHome) && says(Role::Handed).is_none()).then_some("download")
            };
            return self
                .arguments
                .of(Meaning::File)
                .or_else(|| says(Role::Keeps))
                .or_else(silent);
        }
        let opens = self.prose.lead.filter(|_| self.prose.opens);
        opens
            .is_some_and(|verb| verb.has(Role::HandsOver))
            .then(|| says(Role::Keeps))?
    }

    /// Returns `true` if it mentions items that are taken from a queue: a job, a message.
    pub(super) fn may_take(&self) -> bool {
        self.prose.queued || self.first(Role::Queued).is_some()
    }

    /// Finds what says that the answer to a read differs from call to call.
    pub(super) fn volatile(&self) -> Option<Volatile> {
        if let Some(word) = self.first(Role::Cursor) {
            return Some(Volatile::new(Volatility::Cursor, word));
        }
        // `get_current_time`, and `get_time`, which does not say whose time it is
        let time = || {
            let bare = self.roles.len() <= 2;
            let current = bare || self.first(Role::Current).is_some();
            self.first(Role::Time).filter(|_| current)
        };
        self.first(Role::Clock)
            .or_else(time)
            .or(self.prose.drifts)
            .map(|word| Volatile::new(Volatility::Clock, word))
    }

    /// Returns the first word of the name that is in the list.
    pub(super) fn first(&self, role: Role) -> Option<&'static str> {
        self.roles.iter().find_map(|word| word.word_if(role))
    }
}
