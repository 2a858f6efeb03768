//! Compares a value with the one that a rule names.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::read::{Found, as_taken, elements, may_be_packed, may_be_taken_for, string};
use crate::decimal::Decimal;
use crate::members::Members;

/// The result of a condition. Of several that must all hold, the minimum; of several of which one
/// must hold, the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    /// It holds for no reader of the arguments.
    No,
    /// It depends on the reader.
    Unsure,
    /// It holds for every reader of the arguments.
    Yes,
}

impl Answer {
    pub(super) const fn certain(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
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
                .fold(Answer::Yes, Ord::min),
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
        .fold(no_others(wanted, found), Ord::min)
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
    use super::*;

    #[test]
    fn what_is_equal_what_is_not_and_what_is_in_doubt() {
        let rows = r#"
null == null
true == true
1 == 1.0
1.5 == 15e-1
"a/é" == "\u0061\/\u00e9"
[1,"x"] == [ 1 , "x" ]
{"a":1,"b":[{}]} == { "b":[ {} ], "\u0061":1e0 }
1 != "1"
"1" != 1
true != false
false != null
"a" != "A"
[1,2] != [2,1]
[] != {}
[1] != [1,1]
{} != {"b":1,"b":2}
{} != {"b":true,"c":null}
{"a":1} != {"a":1,"b":2}
{"a":1,"b":2} != {"a":1}
{"a":1,"b":1} != {"a":1,"a":2,"b":3}
1 != {"$serde_json::private::RawValue":"1"}
{"a":1} ?? {"a":1,"a":2}
{"a":1} ?? {"a":1,"A":2}
{} ?? {"b":true,"b":null}
{} ?? {"b":null,"B":true}
{"a":1} ?? {"A":1}
{"a":1} ?? {"a":1,"b":null}
{"a":null} ?? {}
{"a":1} ?? " {\"a\":1}"
"a" ?? "\ud800"
9007199254740992 ?? 9007199254740993"#;
        for row in rows.lines().skip(1) {
            let signs = [
                (" == ", Answer::Yes),
                (" != ", Answer::No),
                (" ?? ", Answer::Unsure),
            ];
            let read = |(sign, want)| Some((row.split_once(sign)?, want));
            let ((wanted, text), want) = signs.into_iter().find_map(read).unwrap();
            let wanted: Value = serde_json::from_str(wanted).unwrap();
            let found = is(&wanted, serde_json::from_str(text).unwrap());
            assert_eq!(found, want, "{row}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for spellings in [
            "1 1.0 1e0 10e-1 0.1E1 1.000 1e+0",
            "0 -0 0.0 0e9 -0.0e-9",
            "-1200 -12e2 -1.2E+3 -0.0012e6",
            "12345678901234567890123 1.2345678901234567890123e22",
        ] {
            let spellings: Vec<_> = spellings.split(' ').collect();
            for spelling in &spellings {
                assert_eq!(same_number(spellings[0], spelling), Answer::Yes);
            }
        }
        for (left, right, want) in [
            ("1", "-1", Answer::No),
            ("1", "10", Answer::No),
            ("0", "1e-9", Answer::No),
            ("9007199254740992", "9007199254740993", Answer::Unsure),
            ("1", "1.00000000000000000000001", Answer::Unsure),
            ("1", "1e99999999999999999999", Answer::Unsure),
            ("0", "-1e-999", Answer::Unsure),
        ] {
            assert_eq!(same_number(left, right), want, "{left} {right}");
        }
    }
}
