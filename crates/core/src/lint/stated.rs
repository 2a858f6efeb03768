//! Problems of the declared hints by themselves, and missing ones.

use super::candidate::Case;
use super::{Code, Notes};
use crate::{AnnotationProblem, Field};

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_>) {
    for problem in case.hints.validate() {
        match problem {
            AnnotationProblem::ReadOnlyAndDestructive => {
                notes.add(Code::ReadOnlyAndDestructive, "");
            }
            AnnotationProblem::InvalidNumber { field, value } => notes.add_at(
                Code::NumberOutOfRange,
                field.as_str(),
                format!("{value} is not a number from 0 up"),
                format!("give {}, or leave the hint out", unit(field)),
            ),
            AnnotationProblem::BlankTag { index } => notes.add(Code::BlankTag, index + 1),
            AnnotationProblem::DestructiveUnconfirmed => {
                notes.add(Code::DestructiveUnconfirmed, "");
            }
        }
    }
    let hints = &case.hints;
    if hints.read_only_hint == Some(true) && hints.idempotent_hint == Some(false) {
        notes.add(Code::MeaninglessHint, "");
    }
    // one question at a time: an author who has not stated if the tool writes is not asked what
    // kind of write it is
    match hints.read_only_hint {
        None => return notes.add(Code::MissingReadOnlyHint, ""),
        Some(true) => {}
        Some(false) => writer(case, notes),
    }
    if hints.open_world_hint.is_none() {
        notes.add(Code::MissingOpenWorldHint, "");
    }
}

fn writer(case: &Case<'_>, notes: &mut Notes<'_>) {
    if case.hints.destructive_hint.is_none() {
        notes.add_at(
            Code::MissingDestructiveHint,
            Field::Destructive.as_str(),
            "is missing, so clients take the tool for one that destroys",
            match case.whole.annotations.destructive_hint {
                Some(false) => "say false if it only adds, else true",
                _ => "say true if it may overwrite or remove anything, else false",
            },
        );
    }
    if case.hints.idempotent_hint.is_none() {
        notes.add(Code::MissingIdempotentHint, "");
    }
}

const fn unit(field: Field) -> &'static str {
    match field {
        Field::EstimatedDuration => "milliseconds",
        Field::RateLimitHint => "calls a minute",
        _ => "a number from 0 up",
    }
}
