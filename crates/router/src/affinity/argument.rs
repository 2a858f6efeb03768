//! An argument as an affinity key.

use std::borrow::Cow;

use callward_core::{Decimal, FingerprintKey};

use super::rendezvous::fold;

/// An argument, such that two are equal if they mean the same.
///
/// - A text is what it says, however it is escaped.
/// - A number is its value: `7`, `7.0` and `70e-1` are one. No digit is lost, however many there
///   are, and `"7"` is a text and another key.
/// - `true` and `false` are keys.
/// - An array or object is one as a whole, as the cache takes it: members in any order, numbers
///   within in their own spelling.
///
/// Borrowed from the call, so nothing is allocated but for a text with escapes, a number of more
/// than 32 digits, or a large array or object.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Argument<'a> {
    Bool(bool),
    Number(Decimal),
    Text(Cow<'a, str>),
    Whole(u128),
}

/// A longer argument says what to do rather than with what.
const LONGEST: usize = 4096;

impl<'a> Argument<'a> {
    /// Takes the text of a JSON value; `None` if it makes no key: `null`, longer than 4 KiB, or
    /// something that readers may disagree about.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        if json.len() > LONGEST {
            return None;
        }
        match json.as_bytes().first()? {
            b't' | b'f' => Some(Self::Bool(json == "true")),
            b'"' => {
                let plain = json.strip_prefix('"')?.strip_suffix('"')?;
                if !plain.contains('\\') {
                    return Some(Self::Text(Cow::Borrowed(plain)));
                }
                serde_json::from_str(json)
                    .ok()
                    .map(|text| Self::Text(Cow::Owned(text)))
            }
            b'-' | b'0'..=b'9' => Decimal::read(json).map(Self::Number),
            b'[' | b'{' => {
                let whole = FingerprintKey::fixed().json(json.as_bytes())?;
                Some(Self::Whole(whole))
            }
            _ => None,
        }
    }

    /// Returns what stands for it everywhere and always, in one word.
    pub(super) fn digest(&self) -> u64 {
        let key = FingerprintKey::fixed();
        let bytes = |tag, bytes: &[u8]| key.bytes_behind([tag, 0], bytes);
        fold(match self {
            Self::Bool(flag) => bytes(1, &[u8::from(*flag)]),
            Self::Number(number) => {
                let sign = u64::from(number.negative);
                let scale = u128::from(sign) << 64 | u128::from(number.exponent.cast_unsigned());
                key.bytes_behind([2, scale], &number.digits)
            }
            Self::Text(text) => bytes(3, text.as_bytes()),
            Self::Whole(whole) => bytes(4, &whole.to_le_bytes()),
        })
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
            let first = Argument::read(spellings[0]).unwrap();
            for spelling in spellings {
                let other = Argument::read(spelling).unwrap();
                assert_eq!(first, other, "{spelling}");
                assert_eq!(first.digest(), other.digest(), "{spelling}");
            }
        }
    }

    #[test]
    fn different_arguments_are_different_keys() {
        let texts = r#"7 -7 70 0.7 "7" 0 "" true false "true" [] {} [7] {"a":7} {"a":7.0} "a" "A"
            9007199254740993 9007199254740992"#;
        let texts = texts.split_whitespace();
        let digest = |text| Argument::read(text).unwrap().digest();
        let all: HashSet<u64> = texts.clone().map(digest).collect();
        assert_eq!(all.len(), texts.count());
    }

    #[test]
    fn what_is_no_key_is_none() {
        let long = format!("\"{}\"", "a".repeat(LONGEST));
        let odd = [r#""\ud800""#, r#"{"a":1,"a":2}"#, "1e99999999999999999999"];
        for text in odd.into_iter().chain(["null", "", &long]) {
            assert_eq!(Argument::read(text), None, "{text}");
        }
        let just_fits = format!("\"{}\"", "a".repeat(LONGEST - 2));
        assert!(Argument::read(&just_fits).is_some());
    }

    #[test]
    fn the_digests_are_those_of_every_release() {
        let digests = ["7", r#""a""#, "true", r#"{"a":[1,null]}"#]
            .map(|text| Argument::read(text).unwrap().digest());
        assert_eq!(
            digests,
            [
                0x7782_dd9f_0de7_d1ad,
                0x0b8c_cb72_138e_0989,
                0x31c3_c227_6ede_75e2,
                0x3ca0_ba3b_2ddd_35fe
            ]
        );
    }
}
