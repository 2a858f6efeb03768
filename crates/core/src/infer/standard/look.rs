//! One tool as the rules look at it: its words, its first sentence, its arguments.

use super::{Prose, schema};
use crate::infer::lexicon::words::{
    AGREEMENTS, CLOCKS, CURRENT, CURSORS, DESTINATIONS, FILES, HANDED, PROGRAMS, QUERY, QUEUED,
    TIMES,
};
use crate::infer::lexicon::{Lexicon, Verb, Word};
use crate::infer::volatility::{Volatile, Volatility};
use crate::infer::{Subject, description, words};

/// One tool as the rules look at it.
pub(super) struct Look<'a, 'l> {
    pub(super) subject: &'a Subject<'a>,
    /// The words of the name, without those that only say whose tool it is.
    pub(super) name: &'a [&'a str],
    /// What its description begins with.
    pub(super) prose: Prose<'l>,
    pub(super) lexicon: &'l Lexicon,
}

impl Look<'_, '_> {
    /// Finds the argument that decides what the tool does: `query_sql`, or `query` with an argument
    /// `sql`. Such a tool reads or writes as it is told.
    pub(super) fn program(&self, verb: &Verb) -> Option<&'static str> {
        if !verb.is(QUERY) || self.prose.read_only {
            return None;
        }
        PROGRAMS
            .iter()
            .find(|program| self.says(program) || schema::has(self.subject.input_schema, program))
            .copied()
    }

    /// Finds a choice among the arguments that writes.
    pub(super) fn choice(&self) -> Option<Word> {
        schema::choice(self.subject.input_schema, self.lexicon).map(|verb| verb.word.clone())
    }

    /// Finds what says that the result is not handed over but put somewhere: an argument that names
    /// the place, or a description that does. For a verb that hands over by its nature, a file is
    /// enough.
    pub(super) fn keeps(&self, verb: &Verb) -> Option<&'static str> {
        let has = |name: &&&'static str| schema::has(self.subject.input_schema, name);
        if let Some(place) = DESTINATIONS.iter().find(has) {
            return Some(place);
        }
        let in_schema = || {
            FILES
                .iter()
                .find(has)
                .copied()
                .or_else(|| schema::output(self.subject.input_schema))
        };
        let in_prose = || description::keeps(self.subject.description?);
        match (verb.hands_over(), self.prose.lead) {
            (true, _) => in_schema().or_else(in_prose).or_else(|| {
                let silent = verb.fetches_home()
                    && !self
                        .subject
                        .description
                        .is_some_and(|text| description::says(text, HANDED));
                silent.then_some("download")
            }),
            (false, Some(lead)) if self.prose.opens && lead.hands_over() => in_prose(),
            _ => None,
        }
    }

    /// Says whether it speaks of what is taken when it is next: a job, a message.
    pub(super) fn may_take(&self) -> bool {
        let text = self.subject.description.unwrap_or("");
        QUEUED.iter().any(|word| self.says(word)) || description::mentions(text, QUEUED)
    }

    /// Finds an argument by which the caller agrees to what cannot be taken back.
    pub(super) fn agreement(&self) -> Option<&'static str> {
        AGREEMENTS
            .iter()
            .copied()
            .find(|name| schema::has(self.subject.input_schema, name))
    }

    /// Finds what says that the answer to a read differs from call to call.
    pub(super) fn volatile(&self) -> Option<Volatile> {
        let find = |list: &[&'static str]| list.iter().copied().find(|word| self.says(word));
        if let Some(word) = find(CURSORS) {
            return Some(Volatile::new(Volatility::Cursor, word));
        }
        let clock = find(CLOCKS).or_else(|| {
            let times = find(TIMES)?;
            find(CURRENT).map(|_| times)
        });
        clock
            .or_else(|| description::drifts(self.subject.description?))
            .map(|word| Volatile::new(Volatility::Clock, word))
    }

    /// Says whether the name has the word.
    fn says(&self, word: &str) -> bool {
        self.name.iter().any(|own| words::same(own, word))
    }
}
