//! Our rules: the leading verb of the name, and the reasons to doubt it.
//!
//! In prose: remove the server's name from the tool's, find the first verb, and take it as strong
//! evidence if it leads and is only ever a verb, or if the description begins with one of the same
//! kind. A later write verb outweighs a read, and outweighs a lead that may be a noun. A
//! description that begins with a write verb outweighs a name that reads. Where a name has verbs of
//! both sorts, or one that may be a noun, a description that begins with a reading verb settles it.
//! Without a verb in the name the description alone decides, and firmly only if its first word
//! reads. An argument that chooses between reading and writing, holds a program, or names the place
//! where the result goes, outweighs them all.
//!
//! Every verb that does more than add may lose something, so it makes a weak destructive hint: that
//! is what the specification means by destructive, and what it takes for granted of a silent tool.
//! It costs a confirmation where nothing is declared; a declared `destructiveHint: false` overrides
//! it, since weak evidence contradicts no declared hint.

use super::description::{self, Prose};
use super::evidence::Reason;
use super::lexicon::{self, Lexicon, Role, Roles, VerbKind};
use super::words::{self, Words};
use super::{Inferred, Strength, Subject};
use crate::Field;

mod look;
mod named;
mod schema;
mod verdict;

use look::Look;
use named::Named;
use schema::Arguments;
use verdict::Verdict;

/// Draws conclusions about one tool.
pub(super) fn infer(subject: &Subject<'_>, lexicon: &Lexicon) -> Inferred {
    let all = words::split(subject.name);
    let server = subject.server.map(words::split).unwrap_or_default();
    let name = without_prefix(&all, &server, lexicon);
    let look = Look {
        subject,
        name,
        roles: name.iter().map(|word| Roles::of(word)).collect(),
        prose: description::read(subject.description.unwrap_or(""), lexicon),
        arguments: subject
            .input_schema
            .map(|schema| Arguments::read(schema.get()))
            .unwrap_or_default(),
        lexicon,
    };
    let verdict = match Named::read(look.name, lexicon) {
        Some(named) => Verdict::of_name(&named, &look),
        None => Verdict::of_prose(&look),
    };
    let mut inferred = match verdict {
        Some(verdict) => verdict.conclude(&look),
        None => Inferred::default(),
    };
    // also of a tool without a verb: its author may know that it reads
    if inferred.kind.is_none_or(|kind| kind == VerbKind::Read) {
        inferred.volatile = look.volatile();
    }
    if let Some(reason) = reaches_out(&look, &server) {
        inferred.set(Field::OpenWorld, true, Strength::Weak, reason);
    }
    inferred
}

/// Returns why a tool may reach systems that its server does not control; `None` if its world seems
/// closed.
///
/// That depends mostly on the server, and one tool shows little of it. So the specification's
/// default applies, which is also the careful one: open, unless there is evidence that the tool
/// stays within its server. Words of the web are evidence against that.
fn reaches_out(look: &Look<'_, '_>, server: &Words<'_>) -> Option<Reason> {
    let of_server = |role| server.iter().find_map(|word| Roles::of(word).word_if(role));
    let find = |role| look.first(role).or_else(|| of_server(role));
    match find(Role::Outside) {
        Some(word) => Some(Reason::ReachesOut(word)),
        None => find(Role::AtHome).is_none().then_some(Reason::MayReachOut),
    }
}

/// Removes leading words that only name the server. A verb is never taken for a name.
fn without_prefix<'w, 'a>(
    name: &'w [&'a str],
    server: &Words<'_>,
    lexicon: &Lexicon,
) -> &'w [&'a str] {
    let own = |word: &&str| {
        lexicon.find(word).is_none()
            && (lexicon::is(word, Role::Filler) || server.iter().any(|own| words::same(own, word)))
    };
    let prefix = name.iter().take_while(|word| own(word)).count();
    match name.get(prefix..) {
        Some(rest) if !rest.is_empty() => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests;
