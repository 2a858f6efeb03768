//! Missing hints.
//!
//! One question at a time: an author who has not stated if the tool writes is not asked what kind
//! of write it is.

use super::candidate::Case;
use super::{Code, Notes};
use crate::{Field, Inferred};

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_, '_>) {
    let hints = &case.hints;
    match hints.read_only_hint {
        None => notes.add(
            Code::MissingReadOnlyHint,
            Field::ReadOnly.as_str(),
            "is missing, so clients take the tool for one that writes",
            "say true if it changes nothing, else false",
        ),
        Some(true) => {}
        Some(false) => writer(case, notes),
    }
    if hints.read_only_hint.is_some() && hints.open_world_hint.is_none() {
        notes.add(
            Code::MissingOpenWorldHint,
            Field::OpenWorld.as_str(),
            "is missing, so clients take the tool for one that reaches outside",
            "say false if it stays within the server's own data, else true",
        );
    }
}

fn writer(case: &Case<'_>, notes: &mut Notes<'_, '_>) {
    if case.hints.destructive_hint.is_none() {
        notes.add(
            Code::MissingDestructiveHint,
            Field::Destructive.as_str(),
            "is missing, so clients take the tool for one that destroys",
            match adds(&case.whole) {
                true => "say false if it only adds, else true",
                false => "say true if it may overwrite or remove anything, else false",
            },
        );
    }
    if case.hints.idempotent_hint.is_none() {
        notes.add(
            Code::MissingIdempotentHint,
            Field::Idempotent.as_str(),
            "is missing, so clients never repeat a call that got no answer",
            "say true if a second equal call changes nothing more, else false",
        );
    }
}

fn adds(inferred: &Inferred) -> bool {
    inferred.annotations.destructive_hint == Some(false)
}
