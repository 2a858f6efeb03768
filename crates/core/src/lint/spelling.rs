//! Hints as they are written: names that no client reads, and values that none can read.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::candidate::Case;
use super::{Code, Notes};
use crate::{Annotations, Field};

/// What a hint's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Flag,
    Number,
    Text,
    Texts,
    OneOf(&'static [&'static str]),
}

/// The hints: the field, its short form, and what its value must be.
const HINTS: &[(Field, Option<&str>, Shape)] = &[
    (Field::Title, None, Shape::Text),
    (Field::ReadOnly, Some("readOnly"), Shape::Flag),
    (Field::Destructive, Some("destructive"), Shape::Flag),
    (Field::Idempotent, Some("idempotent"), Shape::Flag),
    (Field::OpenWorld, Some("openWorld"), Shape::Flag),
    (Field::RequiresConfirmation, None, Shape::Flag),
    (Field::Tags, None, Shape::Texts),
    (Field::EstimatedDuration, None, Shape::Number),
    (Field::RateLimitHint, None, Shape::Number),
    (Field::CostHint, None, Shape::Number),
    (
        Field::Complexity,
        None,
        Shape::OneOf(&["simple", "medium", "complex"]),
    ),
    (Field::AuditRequired, None, Shape::Flag),
    (
        Field::SecurityLevel,
        None,
        Shape::OneOf(&["public", "internal", "restricted"]),
    ),
];

/// How many letters may be wrong in a name of at least [`MIN_LEN`] letters.
const MAX_WRONG: usize = 2;
/// In a shorter name a wrong letter easily makes another word.
const MIN_LEN: usize = 8;

/// Takes what can be read of the fields, each under its own name.
pub(super) fn readable(fields: &Map<String, Value>) -> Annotations {
    let mut kept = Map::new();
    for (field, short, shape) in HINTS {
        let value = fields
            .get(field.as_str())
            .or_else(|| fields.get((*short)?))
            .filter(|value| shape.fits(value));
        if let Some(value) = value {
            kept.insert(field.as_str().to_owned(), value.clone());
        }
    }
    serde_json::from_value(Value::Object(kept)).unwrap_or_default()
}

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_, '_>) {
    if let Some(value) = case.members.get("annotations") {
        notes.add(
            Code::WrongType,
            "annotations",
            format!("is {}, not an object", shown(value)),
            "write {\"readOnlyHint\": true} and the like",
        );
    }
    for (name, error) in &case.unreadable {
        notes.add(
            Code::WrongType,
            name.clone(),
            format!("cannot be read: {error}"),
            "give it a value that JSON parsers take",
        );
    }
    for name in &case.twice {
        notes.add(
            Code::GivenTwice,
            name.clone(),
            "stands there twice, and readers disagree about which one counts",
            "keep one",
        );
    }
    for (field, short, _) in HINTS {
        if let Some(short) = short
            && case.fields.contains_key(*short)
            && case.fields.contains_key(field.as_str())
        {
            notes.add(
                Code::GivenTwice,
                field.as_str(),
                format!("stands there, and `{short}` as well"),
                format!("keep `{field}`"),
            );
        }
    }
    for (name, value) in &case.fields {
        match HINTS.iter().find(|hint| hint.0.as_str() == name) {
            Some((_, _, shape)) => wrong_type(name, value, *shape, notes),
            None => unknown(name, value, notes),
        }
    }
    for (field, _, shape) in HINTS {
        let name = field.as_str();
        // `title` is a member of the tool as well
        if *field != Field::Title
            && *shape == Shape::Flag
            && let Some(value) = case.members.get(name)
        {
            notes.add(
                Code::MisplacedHint,
                name,
                format!(
                    "{} stands beside `annotations`, where no client reads it",
                    shown(value)
                ),
                "move it into `annotations`",
            );
        }
    }
}

fn wrong_type(name: &str, value: &Value, shape: Shape, notes: &mut Notes<'_, '_>) {
    if !shape.fits(value) {
        notes.add(
            Code::WrongType,
            name.to_owned(),
            format!("is {}, not {}", shown(value), shape.wanted()),
            format!("give it {}", shape.wanted()),
        );
    }
}

/// Looks whether a field that is not ours was meant to be.
fn unknown(name: &str, value: &Value, notes: &mut Notes<'_, '_>) {
    if let Some((field, _, shape)) = HINTS.iter().find(|hint| hint.1 == Some(name)) {
        notes.add(
            Code::ShortHintName,
            name.to_owned(),
            format!(
                "{} is a short form that the specification does not know",
                shown(value)
            ),
            format!("write `{field}`, or other clients read silence"),
        );
        wrong_type(name, value, *shape, notes);
    } else if let Some(field) = meant(name, value) {
        notes.add(
            Code::MisspelledHint,
            name.to_owned(),
            format!("{} is not read by any client under this name", shown(value)),
            format!("write `{field}`"),
        );
    }
}

/// Finds the hint that a name is nearly, if the value could be the hint's.
fn meant(name: &str, value: &Value) -> Option<Field> {
    let plain = plain(name);
    let near = |known: &str| {
        let known = self::plain(known);
        known == plain
            || (known.len() >= MIN_LEN && strsim::levenshtein(&known, &plain) <= MAX_WRONG)
    };
    HINTS
        .iter()
        .filter(|(_, _, shape)| !value.is_null() && shape.fits(value))
        .find(|(field, short, _)| near(field.as_str()) || short.is_some_and(near))
        .map(|(field, _, _)| *field)
}

/// Letters and digits only, in lower case.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// A value as it is written, cut where it gets long.
fn shown(value: &Value) -> String {
    const MOST: usize = 40;
    let text = value.to_string();
    if text.chars().count() <= MOST {
        return text;
    }
    text.chars().take(MOST).chain("...".chars()).collect()
}

impl Shape {
    /// Returns `true` if a value can be read; `null` counts as absent.
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Self::Flag, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::Text, Value::String(_)) => true,
            (Self::Texts, Value::Array(list)) => list.iter().all(Value::is_string),
            (Self::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }

    fn wanted(self) -> Cow<'static, str> {
        match self {
            Self::Flag => "true or false".into(),
            Self::Number => "a number".into(),
            Self::Text => "a string".into(),
            Self::Texts => "a list of strings".into(),
            Self::OneOf(words) => words.join(" or ").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lint::{Candidate, Finding};
    use crate::{Subject, ToolDefinition};

    #[test]
    fn a_misspelling_is_brought_back_to_the_hint_that_was_meant() {
        for (written, field) in [
            ("readonlyHint", Field::ReadOnly),
            ("read_only_hint", Field::ReadOnly),
            ("readonly", Field::ReadOnly),
            ("destructivHint", Field::Destructive),
            ("Destructive", Field::Destructive),
            ("idempotantHint", Field::Idempotent),
            ("openWorldHints", Field::OpenWorld),
            ("requireConfirmation", Field::RequiresConfirmation),
        ] {
            assert_eq!(meant(written, &json!(true)), Some(field), "{written}");
        }
        for other in ["x-team", "tag", "hint", "readers", "audience", "costs", ""] {
            assert_eq!(meant(other, &json!(true)), None, "{other}");
        }
        // another field with a value of its own
        assert_eq!(meant("idempotency", &json!("by request id")), None);
    }

    #[test]
    fn whatever_registration_refuses_as_given_twice_is_found() {
        for (text, field) in [
            (
                r#""annotations":{"readOnlyHint":true,"readOnlyHint":false}"#,
                "readOnlyHint",
            ),
            (
                r#""annotations":{"readOnly":true,"readOnlyHint":true}"#,
                "readOnlyHint",
            ),
            (
                r#""annotations":{"readOnly":true},"annotations":{}"#,
                "annotations",
            ),
            (r#""description":"a","description":"b""#, "description"),
        ] {
            let text = format!(r#"{{"name":"get_user",{text}}}"#);
            assert!(ToolDefinition::from_json(text.clone()).is_err(), "{text}");
            let definition = serde_json::from_str(&text).unwrap();
            let candidate = Candidate::new(Subject::new("get_user")).with_definition(definition);
            let found = crate::lint::check(&[candidate]);
            let twice: Vec<_> = found
                .iter()
                .filter(|finding| finding.code == Code::GivenTwice)
                .map(|finding| &*finding.field)
                .collect();
            assert_eq!(twice, [field], "{text}");
            let wrong = |finding: &Finding| finding.code == Code::WrongType;
            assert!(!found.iter().any(wrong), "{text}");
        }
    }
}
