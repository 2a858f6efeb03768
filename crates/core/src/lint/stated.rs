//! Problems of the declared hints by themselves.

use super::candidate::Case;
use super::{Code, Notes};
use crate::{AnnotationProblem, Field};

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_, '_>) {
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
}

const fn unit(field: Field) -> &'static str {
    match field {
        Field::EstimatedDuration => "milliseconds",
        Field::RateLimitHint => "calls a minute",
        _ => "a number from 0 up",
    }
}
