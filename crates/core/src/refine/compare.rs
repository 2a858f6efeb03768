//! Compares a value with the one that a rule names.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::read::{Found, as_taken, elements, may_be_packed, may_be_taken_for, string};
use crate::Decimal;
use crate::members::Members;

/// The result of a condition.
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

    /// Both must hold: one that certainly does not decides.
    pub(super) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unsure,
        }
    }

    /// One must hold: one that certainly does decides.
    pub(super) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Unsure,
        }
    }
}

/// Compares with nothing: many take that for `null`.
pub(super) const fn is_absent(wanted: &Value) -> Answer {
    match wanted {
        Value::Null => Answer::Unsure,
        _ => Answer::No,
    }
}

/// Compares with a value as it was written. Never through a tree of serde_json's: there, the text
/// of an object may stand for something else.
pub(super) fn is(wanted: &Value, value: &RawValue) -> Answer {
    let text = value.get();
    match (wanted, text.as_bytes().first()) {
        (Value::Null, Some(b'n')) => Answer::Yes,
        (Value::Bool(flag), Some(b't' | b'f')) => Answer::certain(*flag == (text == "true")),
        (Value::Number(number), Some(b'-' | b'0'..=b'9')) => same_number(&number.to_string(), text),
        (Value::String(wanted), Some(b'"')) => string(text).map_or(Answer::Unsure, |found| {
            Answer::certain(found == wanted.as_str())
        }),
        (Value::Array(wanted), Some(b'[')) => match elements(text) {
            Some(found) if found.len() == wanted.len() => wanted
                .iter()
                .zip(found)
                .map(|(wanted, found)| is(wanted, found))
                .fold(Answer::Yes, Answer::and),
            Some(_) => Answer::No,
            None => Answer::Unsure,
        },
        (Value::Object(wanted), Some(b'{')) => {
            Members::read(text).map_or(Answer::Unsure, |found| same_members(wanted, &found))
        }
        (Value::Array(_) | Value::Object(_), Some(b'"')) if may_be_packed(text) => Answer::Unsure,
        _ => Answer::No,
    }
}

/// Compares the texts of two numbers. Two that only differ for parsers that do not round to a
/// double are in doubt, and so are those whose exponent is beyond all counting.
fn same_number(one: &str, other: &str) -> Answer {
    let exact = Decimal::read(one).zip(Decimal::read(other));
    let rounded = one.parse::<f64>().ok().zip(other.parse::<f64>().ok());
    match (exact, rounded) {
        (Some((one, other)), _) if one == other => Answer::Yes,
        (Some(_), Some((one, other))) if one != other => Answer::No,
        _ => Answer::Unsure,
    }
}

fn same_members(wanted: &Map<String, Value>, found: &Members<'_>) -> Answer {
    wanted
        .iter()
        .map(|(name, wanted)| match found.get(name) {
            Found::Absent => is_absent(wanted),
            Found::Value(value) => is(wanted, value),
            Found::Doubtful => Answer::Unsure,
        })
        .fold(no_others(wanted, found), Answer::and)
}

/// Returns `true` if there is no member beyond the wanted ones. Many take a `null` for none; and
/// where a name is given twice, it may be the `null` that they see.
fn no_others(wanted: &Map<String, Value>, found: &Members<'_>) -> Answer {
    let is_wanted = |name: &str| wanted.keys().any(|wanted| may_be_taken_for(wanted, name));
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
        is(wanted, serde_json::from_str(text).unwrap())
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
            // no name of a member is magic
            (json!(1), r#"{"$serde_json::private::RawValue":"1"}"#),
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
    fn numbers_are_compared_by_value() {
        for spellings in [
            &["1", "1.0", "1e0", "10e-1", "0.1E1", "1.000", "1e+0"][..],
            &["0", "-0", "0.0", "0e9", "-0.0e-9"],
            &["-1200", "-12e2", "-1.2E+3", "-0.0012e6"],
            &["12345678901234567890123", "1.2345678901234567890123e22"],
        ] {
            for spelling in spellings {
                assert_eq!(
                    same_number(spellings[0], spelling),
                    Answer::Yes,
                    "{spelling}"
                );
            }
        }
        for (left, right, want) in [
            ("1", "-1", Answer::No),
            ("1", "10", Answer::No),
            ("0", "1e-9", Answer::No),
            ("9007199254740992", "9007199254740993", Answer::Unsure),
            ("1", "1.00000000000000000000001", Answer::Unsure),
            ("1", "1e99999999999999999999", Answer::Unsure),
            // it vanishes, but for those who count exactly
            ("0", "-1e-999", Answer::Unsure),
        ] {
            assert_eq!(same_number(left, right), want, "{left} {right}");
        }
    }
}
