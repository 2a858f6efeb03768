//! Our rules: the leading verb of the name, and the reasons to doubt it.
//!
//! In prose: take the server's name off the tool's, find the first verb, and believe it firmly if it
//! leads and is only ever a verb, or if the description begins with one of the same kind. A later
//! write verb outweighs a read, and outweighs a lead that may be a noun. A description that begins
//! with a write verb outweighs a name that reads. Without a verb in the name the description
//! alone decides, and never firmly.

use memchr::memmem;
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
        None => Verdict::of_prose(prose),
    };
    let Some(mut verdict) = verdict else {
        return Inferred::default();
    };
    if verdict.kind != Kind::Read && !verdict.kind.is_destructive() {
        verdict.loses = verdict
            .loses
            .or_else(|| description::warning(subject.description?).map(Reason::DescriptionWarns));
    }
    verdict.conclude()
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
            let either = words::same(join, "or") && later.kind == Kind::Set;
            self.idempotent = either || (self.idempotent && later.kind.is_idempotent());
            self.kind = later.kind;
        }
    }
}

/// Picks the verb that says what the tool does: the first, unless it may be a noun and another
/// follows that says something else.
fn head(verbs: &[(usize, &'static Verb)]) -> Option<usize> {
    let (_, first) = verbs.first()?;
    let outweighs = |verb: &Verb| match first.usage {
        Use::Noun => true,
        Use::Either => verb.usage == Use::Verb && verb.kind != first.kind,
        Use::Verb | Use::First | Use::Prose => false,
    };
    let later = verbs
        .iter()
        .skip(1)
        .position(|(_, verb)| outweighs(verb))
        .map(|after| after + 1);
    Some(later.unwrap_or(0))
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
        let word = named.verb.word;
        let reads = named.kind == Kind::Read;
        let worst = prose.worst();
        let agrees = worst.is_some_and(|verb| (verb.kind == Kind::Read) == reads);
        let contradicts = worst.is_some() && !agrees;
        if reads && contradicts {
            return Self::of_prose(prose);
        }
        if reads && let Some(program) = free_form(word, name, subject) {
            return Some(Self::weak(Kind::Act, Reason::FreeForm(program)));
        }
        let clear = match named.verb.usage {
            Use::Verb | Use::First => named.leads,
            Use::Either => named.leads && reads,
            Use::Noun | Use::Prose => false,
        };
        let strong = !named.doubted && !contradicts && (clear || agrees);
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

    fn of_prose(prose: Prose) -> Option<Self> {
        let verb = prose.worst()?;
        Some(Self::weak(verb.kind, Reason::DescriptionLeads(verb.word)))
    }

    const fn weak(kind: Kind, reason: Reason) -> Self {
        Self {
            kind,
            idempotent: kind.is_idempotent(),
            strength: Strength::Weak,
            reason,
            loses: None,
        }
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
        } else if kind == Kind::Add {
            inferred.destructive(false, strength, reason);
        }
        if idempotent {
            inferred.idempotent(true, strength, reason);
        }
        inferred
    }
}

/// Finds the argument that decides what the tool does: `query_sql`, or `query` with an argument
/// `sql`. Such a tool reads or writes as it is told.
fn free_form(verb: &str, name: &[&str], subject: &Subject<'_>) -> Option<&'static str> {
    if verb != QUERY {
        return None;
    }
    let in_name = |program: &&str| name.iter().any(|word| words::same(word, program));
    let in_schema = |program: &&str| {
        subject.input_schema.is_some_and(|schema| {
            memmem::find_iter(schema.get().as_bytes(), program).any(|at| {
                let quote = |at: Option<usize>| {
                    at.and_then(|at| schema.get().as_bytes().get(at)) == Some(&b'"')
                };
                quote(at.checked_sub(1)) && quote(Some(at + program.len()))
            })
        })
    };
    PROGRAMS
        .iter()
        .find(|program| in_name(program) || in_schema(program))
        .copied()
}

#[cfg(test)]
mod tests;
