//! The verbs of a name, weighed against each other.

use smallvec::SmallVec;

use crate::infer::lexicon::{self, Lexicon, Use, Verb, VerbKind};
use crate::infer::words;

/// The verbs of a name, weighed against each other.
pub(super) struct Named<'l> {
    pub(super) verb: &'l Verb,
    /// It is the first word.
    pub(super) leads: bool,
    pub(super) kind: VerbKind,
    pub(super) idempotent: bool,
    /// A later verb says otherwise.
    pub(super) doubted: bool,
    /// A verb that reads, first or last in the name.
    pub(super) reads: Option<&'l Verb>,
    /// No word joins it to another.
    pub(super) alone: bool,
}

impl<'l> Named<'l> {
    pub(super) fn read(name: &[&str], lexicon: &'l Lexicon) -> Option<Self> {
        let verbs: SmallVec<[(usize, &'l Verb); 4]> = name
            .iter()
            .enumerate()
            .filter(|(at, _)| {
                !name
                    .get(at + 1)
                    .is_some_and(|next| lexicon::is_particle(next))
            })
            .filter_map(|(at, word)| Some((at, lexicon.find(word)?)))
            .collect();
        let head = head(&verbs)?;
        let &(at, verb) = verbs.get(head)?;
        let mut named = Self {
            verb,
            leads: at == 0,
            kind: verb.kind,
            idempotent: verb.kind.is_idempotent(),
            doubted: false,
            reads: reads(&verbs, name.len()),
            alone: !name.iter().any(|word| lexicon::is_join(word)),
        };
        for &(at, later) in verbs.iter().skip(head + 1) {
            let join = at
                .checked_sub(1)
                .and_then(|before| name.get(before))
                .filter(|word| lexicon::is_join(word));
            named.weigh(later, join.copied());
        }
        Some(named)
    }

    /// Takes a later verb into account: always after a join, else only where a write follows a
    /// read and cannot be a noun.
    fn weigh(&mut self, later: &'l Verb, join: Option<&str>) {
        if later.kind <= self.kind {
            if join.is_some() && later.kind != VerbKind::Read {
                self.idempotent &= later.kind.is_idempotent();
            }
            return;
        }
        if self.kind == VerbKind::Read {
            if later.usage == Use::Verb || join.is_some() {
                self.verb = later;
                self.leads = false;
                self.kind = later.kind;
                self.idempotent = false;
                self.doubted = true;
            }
        } else if let Some(join) = join {
            // `create_or_update` brings about a state; `create_and_update` does both.
            let either =
                words::same(join, "or") && self.kind == VerbKind::Add && later.kind == VerbKind::Set;
            self.idempotent = either || (self.idempotent && later.kind.is_idempotent());
            self.kind = later.kind;
        }
    }
}

impl Named<'_> {
    /// Says whether a name that seems to write may yet read: its verb may be a noun, or another
    /// that reads stands at either end.
    pub(super) fn may_read(&self) -> bool {
        let noun = match self.verb.usage {
            Use::Either | Use::Noun => true,
            Use::First => !self.leads,
            Use::Verb | Use::Prose => false,
        };
        self.alone && (noun || self.reads.is_some())
    }
}

/// Picks the verb that says what the tool does: the first, unless it may be a noun and another
/// follows that says something else.
fn head(verbs: &[(usize, &Verb)]) -> Option<usize> {
    let mut head = 0;
    loop {
        let (_, first) = verbs.get(head)?;
        let outweighs = |verb: &Verb| match first.usage {
            Use::Noun => true,
            Use::Either => verb.usage == Use::Verb && verb.kind != first.kind,
            Use::Verb | Use::First | Use::Prose => false,
        };
        let later = verbs
            .iter()
            .skip(head + 1)
            .position(|(_, verb)| outweighs(verb));
        match later {
            Some(after) => head += after + 1,
            None => return Some(head),
        }
    }
}

/// Finds a verb that reads at either end of a name of so many words.
fn reads<'l>(verbs: &[(usize, &'l Verb)], words: usize) -> Option<&'l Verb> {
    let is_end = |at: usize| at == 0 || at + 1 == words;
    verbs
        .iter()
        .find(|(at, verb)| {
            is_end(*at) && verb.kind == VerbKind::Read && matches!(verb.usage, Use::Verb | Use::First)
        })
        .map(|(_, verb)| *verb)
}
