//! Our rules: the leading verb of the name, and the reasons to doubt it.
//!
//! In prose: take the server's name off the tool's, find the first verb, and believe it firmly if it
//! leads and is only ever a verb, or if the description begins with one of the same kind. A later
//! write verb outweighs a read, and outweighs a lead that may be a noun. A description that begins
//! with a write verb outweighs a name that reads. Where a name has verbs of both sorts, or one that
//! may be a noun, a description that begins with a reading verb settles it. Without a verb in the name
//! the description alone decides, and firmly only if its first word reads. An argument that chooses
//! between reading and writing, or holds a program, outweighs them all.
//!
//! Every verb that does more than add may lose something, so it makes a weak destructive hint: that is
//! what the specification means by destructive, and what it takes for granted of a silent tool. It
//! costs a question where nobody declared anything; one declared `destructiveHint: false` takes it
//! back, since weak evidence contradicts nobody.

use smallvec::SmallVec;

use super::description::{self, Prose};
use super::evidence::Reason;
use super::lexicon::{self, Kind, PROGRAMS, QUERY, Use, Verb};
use super::words::{self, Words};
use super::{Inferred, Strength, Subject};

/// Draws conclusions about one tool.
pub(super) fn infer(subject: &Subject<'_>) -> Inferred {
    let all = words::split(subject.name);
    let server = subject.server.map(words::split).unwrap_or_default();
    let name = without_prefix(&all, &server);
    let prose = description::read(subject.description.unwrap_or(""));
    let verdict = match Named::read(name) {
        Some(named) => Verdict::of_name(&named, prose, subject, name),
        None => Verdict::of_prose(prose, subject),
    };
    let mut inferred = match verdict {
        Some(verdict) => verdict.moved(name).warned(subject).conclude(),
        None => Inferred::default(),
    };
    if let Some(reason) = world::reaches_out(name, subject) {
        inferred.open_world(true, Strength::Weak, reason);
    }
    inferred
}

/// Takes leading words off that only say whose tool it is. A verb is never taken for a name.
fn without_prefix<'w, 'a>(name: &'w [&'a str], server: &Words<'_>) -> &'w [&'a str] {
    let own = |word: &&str| {
        lexicon::find(word).is_none()
            && (lexicon::is_filler(word) || server.iter().any(|own| words::same(own, word)))
    };
    let prefix = name.iter().take_while(|word| own(word)).count();
    match name.get(prefix..) {
        Some(rest) if !rest.is_empty() => rest,
        _ => name,
    }
}

/// The verbs of a name, weighed against each other.
struct Named {
    verb: &'static Verb,
    /// It is the first word.
    leads: bool,
    kind: Kind,
    idempotent: bool,
    /// A later verb says otherwise.
    doubted: bool,
    /// A verb that reads, first or last in the name.
    reads: Option<&'static Verb>,
    /// No word joins it to another.
    alone: bool,
}

impl Named {
    fn read(name: &[&str]) -> Option<Self> {
        let verbs: SmallVec<[(usize, &'static Verb); 4]> = name
            .iter()
            .enumerate()
            .filter(|(at, _)| {
                !name
                    .get(at + 1)
                    .is_some_and(|next| lexicon::is_particle(next))
            })
            .filter_map(|(at, word)| Some((at, lexicon::find(word)?)))
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
    fn weigh(&mut self, later: &'static Verb, join: Option<&str>) {
        if later.kind <= self.kind {
            if join.is_some() && later.kind != Kind::Read {
                self.idempotent &= later.kind.is_idempotent();
            }
            return;
        }
        if self.kind == Kind::Read {
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
                words::same(join, "or") && self.kind == Kind::Add && later.kind == Kind::Set;
            self.idempotent = either || (self.idempotent && later.kind.is_idempotent());
            self.kind = later.kind;
        }
    }
}

impl Named {
    /// Says whether a name that seems to write may yet read: its verb may be a noun, or another
    /// that reads stands at either end.
    fn may_read(&self) -> bool {
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
fn head(verbs: &[(usize, &'static Verb)]) -> Option<usize> {
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
fn reads(verbs: &[(usize, &'static Verb)], words: usize) -> Option<&'static Verb> {
    let is_end = |at: usize| at == 0 || at + 1 == words;
    verbs
        .iter()
        .find(|(at, verb)| {
            is_end(*at) && verb.kind == Kind::Read && matches!(verb.usage, Use::Verb | Use::First)
        })
        .map(|(_, verb)| *verb)
}

/// What is concluded, before it becomes hints.
struct Verdict {
    kind: Kind,
    idempotent: bool,
    strength: Strength,
    reason: Reason,
    /// A reason of its own to call the tool destructive, never a strong one.
    loses: Option<Reason>,
}

impl Verdict {
    fn of_name(named: &Named, prose: Prose, subject: &Subject<'_>, name: &[&str]) -> Option<Self> {
        let worst = prose.worst();
        if named.kind != Kind::Read
            && named.may_read()
            && prose.opens
            && let Some(verb) = worst.filter(|verb| verb.kind == Kind::Read)
        {
            // The description knows which words of the name are nouns.
            let reason = match named.reads {
                Some(read) => Reason::NameAndDescription(read.word),
                None => Reason::DescriptionLeads(verb.word),
            };
            return Some(match schema::choice(subject.input_schema) {
                Some(choice) => Self::weak(Kind::Change, Reason::Chooses(choice)),
                None => Self::new(Kind::Read, Strength::Strong, reason),
            });
        }
        let word = named.verb.word;
        let reads = named.kind == Kind::Read;
        let worst = worst.filter(|verb| !(reads && runs_a_read(named, prose, verb)));
        let agrees = worst.is_some_and(|verb| (verb.kind == Kind::Read) == reads);
        let contradicts = worst.is_some() && !agrees;
        if reads && contradicts {
            return Self::of_prose(prose, subject);
        }
        if reads
            && !prose.read_only
            && let Some(program) = free_form(word, name, subject)
        {
            return Some(Self::weak(Kind::Change, Reason::FreeForm(program)));
        }
        if reads && let Some(choice) = schema::choice(subject.input_schema) {
            return Some(Self::weak(Kind::Change, Reason::Chooses(choice)));
        }
        let clear = match named.verb.usage {
            Use::Verb | Use::First => named.leads,
            Use::Either => named.leads && reads,
            Use::Noun | Use::Prose => false,
        };
        let strong =
            !named.doubted && !contradicts && (clear || (agrees && (!reads || prose.opens)));
        Some(Self {
            kind: named.kind,
            idempotent: named.idempotent,
            strength: if strong {
                Strength::Strong
            } else {
                Strength::Weak
            },
            reason: match (named.leads, agrees) {
                (true, _) => Reason::NameLeads(word),
                (false, true) => Reason::NameAndDescription(word),
                (false, false) => Reason::NameSays(word),
            },
            loses: worst
                .filter(|verb| verb.kind.is_destructive())
                .map(|verb| Reason::DescriptionLeads(verb.word)),
        })
    }

    /// The description alone. It is believed to read only if it says so with its first word.
    fn of_prose(prose: Prose, subject: &Subject<'_>) -> Option<Self> {
        let verb = prose.worst()?;
        if verb.kind == Kind::Read
            && let Some(choice) = schema::choice(subject.input_schema)
        {
            return Some(Self::weak(Kind::Change, Reason::Chooses(choice)));
        }
        let strong = prose.opens && verb.kind == Kind::Read;
        let strength = if strong {
            Strength::Strong
        } else {
            Strength::Weak
        };
        Some(Self::new(
            verb.kind,
            strength,
            Reason::DescriptionLeads(verb.word),
        ))
    }

    const fn weak(kind: Kind, reason: Reason) -> Self {
        Self::new(kind, Strength::Weak, reason)
    }

    const fn new(kind: Kind, strength: Strength, reason: Reason) -> Self {
        Self {
            kind,
            idempotent: kind.is_idempotent(),
            strength,
            reason,
            loses: None,
        }
    }

    /// Doubts a read whose answer moves on with each call.
    fn moved(mut self, name: &[&str]) -> Self {
        if self.kind == Kind::Read && name.iter().any(|word| lexicon::is_cursor(word)) {
            self.strength = Strength::Weak;
        }
        self
    }

    /// Heeds what the whole description warns of.
    fn warned(mut self, subject: &Subject<'_>) -> Self {
        if self.kind != Kind::Read && !self.kind.is_destructive() {
            self.loses = self.loses.or_else(|| {
                description::warning(subject.description?).map(Reason::DescriptionWarns)
            });
        }
        self
    }

    fn conclude(self) -> Inferred {
        let Self {
            kind,
            idempotent,
            strength,
            reason,
            loses,
        } = self;
        let mut inferred = Inferred::default();
        if kind == Kind::Read {
            inferred.read_only(true, strength, reason);
            inferred.idempotent(true, strength, Reason::ReadsOnly);
            return inferred;
        }
        inferred.read_only(false, strength, reason);
        if kind.is_destructive() {
            inferred.destructive(true, strength, reason);
        } else if let Some(loses) = loses {
            inferred.destructive(true, Strength::Weak, loses);
        } else if kind.may_lose() {
            inferred.destructive(true, Strength::Weak, reason);
        } else if kind == Kind::Add {
            inferred.destructive(false, strength, reason);
        }
        if idempotent {
            inferred.idempotent(true, strength, reason);
        }
        inferred
    }
}

/// Says whether a description that begins with `runs` or `executes` may go with a name that reads:
/// `find`, which runs a search. What runs a query is another matter, unless it is said to read only.
fn runs_a_read(named: &Named, prose: Prose, verb: &Verb) -> bool {
    lexicon::is_run(verb)
        && (prose.read_only || (prose.runs_read && named.leads && named.verb.word != QUERY))
}

/// Finds the argument that decides what the tool does: `query_sql`, or `query` with an argument
/// `sql`. Such a tool reads or writes as it is told.
fn free_form(verb: &str, name: &[&str], subject: &Subject<'_>) -> Option<&'static str> {
    if verb != QUERY {
        return None;
    }
    let in_name = |program: &&str| name.iter().any(|word| words::same(word, program));
    let in_schema = |program: &&str| schema::has(subject.input_schema, program);
    PROGRAMS
        .iter()
        .find(|program| in_name(program) || in_schema(program))
        .copied()
}

mod schema;
mod world;

#[cfg(test)]
mod tests;
