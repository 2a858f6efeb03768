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
    /// Finds what decides what the tool does: `query_sql`, or `query` with an argument `sql`. Such
    /// a tool reads or writes depending on that argument, if nothing restricts it to reading.
    pub(super) fn program(&self, verb: &Verb) -> Option<&'static str> {
        if self.prose.read_only {
            return None;
        }
        let arguments = &self.arguments;
        let statement = || arguments.of(Meaning::Statement);
        let query = || arguments.of(Meaning::Query).or_else(statement);
        let language = || {
            let text = self.subject.description.unwrap_or("");
            let example = || text.contains("SELECT ").then_some("sql");
            let said = || self.says(Role::Language).or_else(example);
            self.first(Role::Language).or_else(said)
        };
        if verb.is(QUERY) {
            list("programs")
                .iter()
                .copied()
                .find(|program| self.name.iter().any(|own| words::same(own, program)))
                .or_else(|| arguments.of(Meaning::Program))
                .or_else(|| {
                    let unknown = self.subject.input_schema.is_none();
                    language().filter(|_| unknown || query().is_some())
                })
        } else if verb.has(Role::Retrieves) {
            statement()
        } else {
            None
        }
    }

    /// Returns `true` if its queries are of a language that only reads: `query_logs`.
    pub(super) fn asks_a_log(&self) -> bool {
        let role = Role::ReadingLanguage;
        self.first(role).or_else(|| self.says(role)).is_some()
    }

    /// Finds the word by which a verb that reads elsewhere writes here: `git_fetch`.
    pub(super) fn writes_here(&self, verb: &Verb) -> Option<&'static str> {
        let texts = [self.subject.server, self.subject.description];
        let said = texts
            .into_iter()
            .flatten()
            .flat_map(description::first_words);
        let mut words = self.name.iter().copied().chain(said);
        words.find_map(|word| self.lexicon.writes_with(verb, word))
    }

    /// Returns `true` if a querying tool describes itself by its name only, where the query may be
    /// one that changes something.
    pub(super) fn is_open_query(&self, verb: &Verb) -> bool {
        let says = |verb: &Verb| verb.kind == VerbKind::Read && !verb.is(QUERY);
        let reads = self.prose.opens && self.prose.worst().is_some_and(says);
        // the arguments of `query_database` may be unknown
        let unknown = self.subject.input_schema.is_none() && self.name.contains(&"database");
        verb.is(QUERY)
            && (self.arguments.of(Meaning::Query).is_some() || unknown)
            && !(reads || self.prose.read_only || self.asks_a_log())
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
        let lands = self.prose.lands.filter(|_| verb.has(Role::Retrieves));
        let destination = self.arguments.of(Meaning::Destination).or(lands);
        if destination.is_some() {
            return destination;
        }
        if verb.has(Role::HandsOver) {
            let silent = || {
                (verb.has(Role::FetchesHome) && self.says(Role::Handed).is_none())
                    .then_some("download")
            };
            return self
                .arguments
                .of(Meaning::File)
                .or_else(|| self.says(Role::Keeps))
                .or_else(silent);
        }
        let opens = self.prose.lead.filter(|_| self.prose.opens);
        opens
            .is_some_and(|verb| verb.has(Role::HandsOver))
            .then(|| self.says(Role::Keeps))?
    }

    /// Returns `true` if it mentions items that are taken from a queue: a job, a message.
    pub(super) fn may_take(&self) -> bool {
        self.prose.queued || self.prose.since_last || self.first(Role::Queued).is_some()
    }

    /// Finds what says that the answer to a read differs from call to call.
    pub(super) fn volatile(&self) -> Option<Volatile> {
        let since_last = || self.prose.since_last.then_some("since the last");
        if let Some(word) = self.first(Role::Cursor).or_else(since_last) {
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

    /// Returns the first word of the description's first sentences that is in the list.
    fn says(&self, role: Role) -> Option<&'static str> {
        description::find(self.subject.description?, role)
    }

    /// Returns the first word of the name that is in the list.
    pub(super) fn first(&self, role: Role) -> Option<&'static str> {
        self.roles.iter().find_map(|word| word.word_if(role))
    }
}
