//! An argument as an affinity key.

use callward_core::FingerprintKey;

/// A longer argument says what to do rather than with what.
const LONGEST: usize = 4096;

/// Returns what stands for the text of a JSON value everywhere and always, such that two are equal
/// if they mean the same; `None` if it makes no key: `null`, longer than 4 KiB, or something that
/// readers may disagree about.
///
/// - A text is what it says, however it is escaped.
/// - A number is its value: `7`, `7.0` and `70e-1` are one. No digit is lost, however many there
///   are, and `"7"` is a text and another key.
/// - An array or object is one as a whole, as the cache takes it: members in any order, numbers
///   within in their own spelling.
pub(super) fn digest(json: &str) -> Option<u128> {
    if json.len() > LONGEST || json == "null" {
        return None;
    }
    let key = FingerprintKey::fixed();
    match json.as_bytes().first()? {
        b'-' | b'0'..=b'9' => key.number(json),
        _ => key.json(json.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn spellings_of_one_argument_are_one_key() {
        for spellings in [
            &["7", "7.0", "70e-1", "0.7E1", "7e+0"][..],
            &["0", "-0", "0.0", "-0e9"],
            &["12345678901234567890123", "1.2345678901234567890123e22"],
            &[r#""a/é""#, r#""\u0061\/\u00e9""#],
            &[r#"{"a":1,"b":[2]}"#, r#"{ "b":[ 2 ], "\u0061":1 }"#],
        ] {
            let first = digest(spellings[0]).unwrap();
            for spelling in spellings {
                assert_eq!(digest(spelling), Some(first), "{spelling}");
            }
        }
    }

    #[test]
    fn different_arguments_are_different_keys() {
        let texts = r#"7 -7 70 0.7 "7" 0 "" true false "true" [] {} [7] {"a":7} {"a":7.0} "a" "A"
            9007199254740993 9007199254740992"#;
        let texts = texts.split_whitespace();
        let all: HashSet<_> = texts.clone().map(|text| digest(text).unwrap()).collect();
        assert_eq!(all.len(), texts.count());
    }

    #[test]
    fn what_is_no_key_is_none() {
        let long = format!("\"{}\"", "a".repeat(LONGEST));
        let odd = [r#""\ud800""#, r#"{"a":1,"a":2}"#, "1e99999999999999999999"];
        for text in odd.into_iter().chain(["null", "", &long]) {
            assert_eq!(digest(text), None, "{text}");
        }
        let just_fits = format!("\"{}\"", "a".repeat(LONGEST - 2));
        assert!(digest(&just_fits).is_some());
    }
}
