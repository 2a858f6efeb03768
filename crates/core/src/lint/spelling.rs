//! The spelling of hints: names that no client reads, and values that none can read.

use serde_json::{Map, Value};

use super::candidate::Case;
use super::{Code, Notes};
use crate::annotations::Shape;
use crate::infer::words::plain;
use crate::one_line::one_line;
use crate::{Annotations, Field};

/// How many letters may be wrong in a name of at least [`MIN_LEN`] letters.
const MAX_WRONG: usize = 2;
/// In a shorter name a wrong letter easily makes another word.
const MIN_LEN: usize = 8;

/// Keeps the fields that can be read, each under its own name.
pub(super) fn readable(fields: &Map<String, Value>) -> Annotations {
    let mut kept = Map::new();
    for field in Field::ALL {
        let value = fields.get(field.as_str());
        let value = value.or_else(|| fields.get(field.short()?));
        if let Some(value) = value.filter(|value| field.shape().fits(value)) {
            kept.insert(field.as_str().to_owned(), value.clone());
        }
    }
    serde_json::from_value(Value::Object(kept)).unwrap_or_default()
}

pub(super) fn check(case: &Case<'_>, notes: &mut Notes<'_>) {
    if let Some(value) = case.members.get("annotations") {
        notes.add_at(
            Code::WrongType,
            "annotations",
            format!("is {}, not an object", shown(value)),
            "write {\"readOnlyHint\": true} and the like",
        );
    }
    for (name, error) in &case.unreadable {
        notes.add_at(
            Code::WrongType,
            name.clone(),
            format!("cannot be read: {error}"),
            "give it a value that JSON parsers take",
        );
    }
    for name in &case.twice {
        notes.add_at(
            Code::GivenTwice,
            name.clone(),
            "stands there twice, and readers disagree about which one counts",
            "keep one",
        );
    }
    for field in Field::ALL {
        if let Some(short) = field.short()
            && case.fields.contains_key(short)
            && case.fields.contains_key(field.as_str())
        {
            notes.add_at(
                Code::GivenTwice,
                field.as_str(),
                format!("stands there, and `{short}` as well"),
                format!("keep `{field}`"),
            );
        }
    }
    for (name, value) in &case.fields {
        match Field::by_key(name) {
            Some(field) if field.as_str() == name => wrong_type(name, value, field, notes),
            field => unknown(name, value, field, notes),
        }
    }
    for field in Field::ALL {
        let name = field.as_str();
        if field.shape() == Shape::Flag
            && let Some(value) = case.members.get(name)
        {
            notes.add_at(
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

fn wrong_type(name: &str, value: &Value, field: Field, notes: &mut Notes<'_>) {
    let wanted = field.shape().wanted();
    if !field.shape().fits(value) {
        notes.add_at(
            Code::WrongType,
            name.to_owned(),
            format!("is {}, not {wanted}", shown(value)),
            format!("give it {wanted}"),
        );
    }
}

/// Looks whether a field whose name the specification does not know was meant to be one of ours:
/// `short`, if the name is a short form.
fn unknown(name: &str, value: &Value, short: Option<Field>, notes: &mut Notes<'_>) {
    if let Some(field) = short {
        notes.add_at(
            Code::ShortHintName,
            name.to_owned(),
            format!(
                "{} is a short form that the specification does not know",
                shown(value)
            ),
            format!("write `{field}`, or other clients read silence"),
        );
        wrong_type(name, value, field, notes);
    } else if let Some(field) = meant(name, value) {
        notes.add_at(
            Code::MisspelledHint,
            name.to_owned(),
            format!("{} is not read by any client under this name", shown(value)),
            format!("write `{field}`"),
        );
    }
}

/// Finds the hint with a similar name, if the value fits it.
fn meant(name: &str, value: &Value) -> Option<Field> {
    let name = plain(name);
    let near = |known: &str| {
        let known = plain(known);
        known == name || (known.len() >= MIN_LEN && strsim::levenshtein(&known, &name) <= MAX_WRONG)
    };
    let is_meant = |field: &Field| {
        !value.is_null()
            && field.shape().fits(value)
            && (near(field.as_str()) || field.short().is_some_and(near))
    };
    Field::ALL.iter().copied().find(is_meant)
}

/// A value as it is written, cut where it gets long.
fn shown(value: &Value) -> String {
    one_line(&value.to_string(), 40)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lint::Candidate;
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
        let rows = r#"
readOnlyHint: "annotations":{"readOnlyHint":true,"readOnlyHint":false}
readOnlyHint: "annotations":{"readOnly":true,"readOnlyHint":true}
annotations: "annotations":{"readOnly":true},"annotations":{}
description: "description":"a","description":"b""#;
        for (field, text) in rows.lines().filter_map(|row| row.split_once(": ")) {
            let text = format!(r#"{{"name":"get_user",{text}}}"#);
            assert!(ToolDefinition::from_json(text.clone()).is_err(), "{text}");
            let found = crate::lint::check(&[Candidate {
                subject: Subject::new("get_user"),
                definition: Some(serde_json::from_str(&text).unwrap()),
            }]);
            let twice = found
                .iter()
                .filter(|finding| finding.code == Code::GivenTwice);
            let twice: Vec<_> = twice.map(|finding| &*finding.field).collect();
            assert_eq!(twice, [field], "{text}");
            assert!(found.iter().all(|finding| finding.code != Code::WrongType));
        }
    }
}
