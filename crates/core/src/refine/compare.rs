//! Whether a value is the one that a rule names.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::number::Number;
use super::read::{Found, as_taken, elements, may_be_packed, may_be_taken_for, string};
use crate::members::Members;

/// What can be said of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It holds for every reader of the arguments.
    Yes,
    /// It holds for no reader of the arguments.
    No,
    /// It depends on the reader.
    Unsure,
}

impl Answer {
    pub(super) const fn certain(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// Both must hold: one that certainly does not settles it.
    pub(super) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unsure,
        }
    }

    /// One must hold: one that certainly does settles it.
    pub(super) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Unsure,
        }
    }
}

/// A value to compare with, made ready for it.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    /// `None`: beyond what can be compared; nothing is certainly equal to it.
    Number(Option<Number>),
    String(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Constant {
    pub(super) fn new(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(Number::read(&number.to_string())),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::new).collect()),
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), Self::new(value)))
                    .collect(),
            ),
        }
    }

    /// Compares with nothing: many take that for `null`.
    pub(super) const fn is_absent(&self) -> Answer {
        match self {
            Self::Null => Answer::Unsure,
            _ => Answer::No,
        }
    }

    /// Compares with a value as it was written. Never through a tree of serde_json's: there, the
    /// text of an object may stand for something else.
    pub(super) fn is(&self, value: &RawValue) -> Answer {
        let text = value.get();
        match (self, text.as_bytes().first()) {
            (Self::Null, Some(b'n')) => Answer::Yes,
            (Self::Bool(flag), Some(b't' | b'f')) => Answer::certain(*flag == (text == "true")),
            (Self::Number(number), Some(b'-' | b'0'..=b'9')) => number
                .as_ref()
                .map_or(Answer::Unsure, |number| number.is(text)),
            (Self::String(wanted), Some(b'"')) => string(text).map_or(Answer::Unsure, |found| {
                Answer::certain(found == wanted.as_str())
            }),
            (Self::Array(wanted), Some(b'[')) => match elements(text) {
                Some(found) if found.len() == wanted.len() => wanted
                    .iter()
                    .zip(found)
                    .map(|(wanted, found)| wanted.is(found))
                    .fold(Answer::Yes, Answer::and),
                Some(_) => Answer::No,
                None => Answer::Unsure,
            },
            (Self::Object(wanted), Some(b'{')) => {
                Members::read(text).map_or(Answer::Unsure, |found| same_members(wanted, &found))
            }
            (Self::Array(_) | Self::Object(_), Some(b'"')) if may_be_packed(text) => Answer::Unsure,
            _ => Answer::No,
        }
    }
}

fn same_members(wanted: &[(String, Constant)], found: &Members<'_>) -> Answer {
    wanted
        .iter()
        .map(|(name, wanted)| match found.get(name) {
            Found::Absent => wanted.is_absent(),
            Found::Value(value) => wanted.is(value),
            Found::Doubtful => Answer::Unsure,
        })
        .fold(no_others(wanted, found), Answer::and)
}

/// Returns `true` if there is no member beyond the wanted ones. Many take a `null` for none; and
/// where a name is given twice, it may be the `null` that they see.
fn no_others(wanted: &[(String, Constant)], found: &Members<'_>) -> Answer {
    let is_wanted = |name: &str| {
        wanted
            .iter()
            .any(|(wanted, _)| may_be_taken_for(wanted, name))
    };
    let (nulls, others): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|(name, _)| !is_wanted(name))
        .partition(|(_, value)| value.get() == "null");
    if nulls.is_empty() {
        return Answer::certain(others.is_empty());
    }
    let nulls: HashSet<String> = nulls
        .iter()
        .map(|(name, _)| as_taken(name).collect())
        .collect();
    let stands = |(name, _): &(&str, _)| !nulls.contains(&as_taken(name).collect::<String>());
    if others.iter().any(stands) {
        Answer::No
    } else {
        Answer::Unsure
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare(wanted: &Value, text: &str) -> Answer {
        Constant::new(wanted).is(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn equality_is_exact_but_for_spelling() {
        for (wanted, text) in [
            (json!(null), "null"),
            (json!(true), "true"),
            (json!(1), "1.0"),
            (json!(1.5), "15e-1"),
            (json!("a/é"), r#""\u0061\/\u00e9""#),
            (json!([1, "x"]), r#"[ 1 , "x" ]"#),
            (
                json!({"a": 1, "b": [{}]}),
                r#"{ "b":[ {} ], "\u0061":1e0 }"#,
            ),
        ] {
            assert_eq!(compare(&wanted, text), Answer::Yes, "{wanted} {text}");
        }
        for (wanted, text) in [
            (json!(1), r#""1""#),
            (json!("1"), "1"),
            (json!(true), "false"),
            (json!(false), "null"),
            (json!("a"), r#""A""#),
            (json!([1, 2]), "[2,1]"),
            (json!([]), "{}"),
            (json!([1]), "[1,1]"),
            (json!({}), r#"{"b":1,"b":2}"#),
            (json!({}), r#"{"b":true,"c":null}"#),
            (json!({"a": 1}), r#"{"a":1,"b":2}"#),
            (json!({"a": 1, "b": 2}), r#"{"a":1}"#),
        ] {
            assert_eq!(compare(&wanted, text), Answer::No, "{wanted} {text}");
        }
    }

    #[test]
    fn what_readers_disagree_about_is_in_doubt() {
        for (wanted, text) in [
            (json!({"a": 1}), r#"{"a":1,"a":2}"#),
            (json!({"a": 1}), r#"{"a":1,"A":2}"#),
            (json!({}), r#"{"b":true,"b":null}"#),
            (json!({}), r#"{"b":null,"B":true}"#),
            (json!({"a": 1}), r#"{"A":1}"#),
            (json!({"a": 1}), r#"{"a":1,"b":null}"#),
            (json!({"a": null}), "{}"),
            (json!({"a": 1}), r#"" {\"a\":1}""#),
            (json!("a"), r#""\ud800""#),
            (json!(9_007_199_254_740_992_u64), "9007199254740993"),
        ] {
            assert_eq!(compare(&wanted, text), Answer::Unsure, "{wanted} {text}");
        }
        // the rest of the object settles it
        assert_eq!(
            compare(&json!({"a": 1, "b": 1}), r#"{"a":1,"a":2,"b":3}"#),
            Answer::No
        );
    }

    #[test]
    fn no_name_of_a_member_is_magic() {
        let text = r#"{"$serde_json::private::RawValue":"1"}"#;
        assert_eq!(compare(&json!(1), text), Answer::No);
    }
}
