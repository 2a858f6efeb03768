//! Names and descriptions, which models choose by.

use super::candidate::Case;
use super::{Code, Notes};
use crate::{Field, RuleSet, Subject};

/// Several model APIs refuse longer names.
const LONGEST: usize = 64;
/// A description of fewer words repeats the name at best.
const FEWEST_WORDS: usize = 3;

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_>) {
    spelling(case.subject.name, notes);
    description(case.subject.description, notes);
    meaning(case, notes);
}

fn spelling(name: &str, notes: &mut Notes<'_>) {
    let length = name.chars().count();
    if length > LONGEST {
        notes.add(Code::NameTooLong, length);
    }
    let odd = name
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    if name.is_empty() {
        notes.add_at(
            Code::NameCharacters,
            "name",
            "is empty",
            "name the tool by a verb and what it is about",
        );
    } else if let Some(odd) = odd {
        notes.add(Code::NameCharacters, format_args!("{odd:?}"));
    } else if name.contains('.') {
        notes.add(Code::DottedName, "");
    }
}

fn description(text: Option<&str>, notes: &mut Notes<'_>) {
    let text = text.unwrap_or("").trim();
    if text.is_empty() {
        notes.add(Code::MissingDescription, "");
    } else if text.is_ascii() && text.split_whitespace().count() < FEWEST_WORDS {
        // other scripts need fewer words, or do not separate them
        notes.add(Code::ShortDescription, format_args!("{text:?}"));
    }
}

fn meaning(case: &Case<'_>, notes: &mut Notes<'_>) {
    let by_name = case.name.annotations.read_only_hint;
    if case.words.annotations.read_only_hint == Some(false)
        && opens_with_write(case.subject.description)
        && case.hints.read_only_hint != Some(true)
        && let Some(name) = case.name.firm(Field::ReadOnly, true)
        && let Some(prose) = case.words.evidence_for(Field::ReadOnly)
    {
        notes.add(Code::MisleadingName, format_args!("{name}, but {prose}"));
    }
    if by_name.is_none() && case.hints.read_only_hint.is_none() && !case.subject.name.is_empty() {
        notes.add(Code::UnclearName, "");
    }
}

/// Returns `true` if the very first word of a description writes. Further on in the sentence a verb
/// may be what the caller does: `Before you edit a file, check it`.
fn opens_with_write(description: Option<&str>) -> bool {
    let first = description
        .unwrap_or("")
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty());
    first.is_some_and(|word| {
        let alone = Subject {
            description: Some(word),
            ..Subject::new("")
        };
        let alone = RuleSet::Standard.infer(&alone);
        alone.annotations.read_only_hint == Some(false)
    })
}
