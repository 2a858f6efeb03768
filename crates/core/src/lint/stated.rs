//! Problems of the declared hints by themselves, and missing ones.

use super::candidate::Case;
use super::{Code, Notes};
use crate::{AnnotationProblem, Field};

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_>) {
    for problem in case.hints.validate() {
        let field = problem.field().as_str();
        match problem {
            AnnotationProblem::ReadOnlyAndDestructive => notes.add(
                Code::ReadOnlyAndDestructive,
                field,
                "true, and destructiveHint is true as well",
                "keep the one that holds; a tool with both is refused",
            ),
            AnnotationProblem::InvalidNumber { field, value } => notes.add(
                Code::NumberOutOfRange,
                field.as_str(),
                format!("{value} is not a number from 0 up"),
                format!("give {}, or leave the hint out", unit(field)),
            ),
            AnnotationProblem::BlankTag { index } => notes.add(
                Code::BlankTag,
                field,
                format!("tag {} is blank", index + 1),
                "give it a word, or leave it out",
            ),
            AnnotationProblem::DestructiveUnconfirmed => notes.add(
                Code::DestructiveUnconfirmed,
                field,
                "false, but destructiveHint is true",
                "leave it out: a destructive tool asks all the same",
            ),
        }
    }
    if case.hints.read_only_hint == Some(true) && case.hints.idempotent_hint == Some(false) {
        notes.add(
            Code::MeaninglessHint,
            Field::Idempotent.as_str(),
            "false, but a read-only tool changes nothing however often it runs",
            "leave it out, or say true",
        );
    }
    gaps(case, notes);
}

/// Finds missing hints. One question at a time: an author who has not stated if the tool writes is
/// not asked what kind of write it is.
fn gaps(case: &Case<'_>, notes: &mut Notes<'_>) {
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

fn writer(case: &Case<'_>, notes: &mut Notes<'_>) {
    if case.hints.destructive_hint.is_none() {
        notes.add(
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
        notes.add(
            Code::MissingIdempotentHint,
            Field::Idempotent.as_str(),
            "is missing, so clients never repeat a call that got no answer",
            "say true if a second equal call changes nothing more, else false",
        );
    }
}

const fn unit(field: Field) -> &'static str {
    match field {
        Field::EstimatedDuration => "milliseconds",
        Field::RateLimitHint => "calls a minute",
        _ => "a number from 0 up",
    }
}
