//! The identity of JSON values: a keyed 128-bit structural hash.
//!
//! Two spellings of one value have equal hashes (order of members, white space, escapes in
//! strings); two different values do not, unless SipHash is broken. The raw text is read in one
//! pass, without building a tree.
//!
//! Not RFC 8785 (JSON canonicalization): it writes every integer through an IEEE double, so that
//! `9007199254740993` and `9007199254740992` become the same text. Here a number is its spelling:
//! integers of any length are exact, and `1`, `1.0` and `1e0` are three values, as a tool may
//! distinguish them.
//!
//! The hash is SipHash-1-3 with 128 bits of output (Aumasson and Bernstein, 2012), keyed, because
//! arguments are untrusted: without the key a client cannot construct a collision.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};
use smallvec::{SmallVec, smallvec};

mod scan;

use crate::decimal::Decimal;
use scan::{Canonical, Tag, scan};

/// The secret that makes fingerprints unpredictable.
///
/// ```
/// use callward_core::FingerprintKey;
///
/// let key = FingerprintKey::new(1, 2);
/// let one = key.json(br#"{"id":9007199254740993,"q":"a"}"#);
/// assert_eq!(one, key.json(br#"{ "q":"\u0061", "id":9007199254740993 }"#));
/// assert_ne!(one, key.json(br#"{"id":9007199254740992,"q":"a"}"#));
/// ```
#[derive(Clone, Copy)]
pub struct FingerprintKey(SipHasher13);

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(secret)")
    }
}

impl FingerprintKey {
    /// Takes 128 secret bits.
    pub fn new(a: u64, b: u64) -> Self {
        Self(SipHasher13::new_with_keys(a, b))
    }

    /// Returns the public key: for digests that must agree between processes and that are worthless
    /// to forge. Never for cache keys.
    pub fn fixed() -> Self {
        Self::new(0x746f_6c6c_6761_7465, 0x6669_7865_6400_0001)
    }

    /// Returns the structural fingerprint of one JSON text; `None` if the text is not JSON, or is
    /// JSON that two parsers may read differently: with a member twice, with an escape that is not
    /// Unicode, or nested more than 128 deep.
    pub fn json(&self, text: &[u8]) -> Option<u128> {
        let mut canonical = Canonical::new();
        scan(text, &mut canonical)?;
        Some(self.hash(&[&canonical]))
    }

    /// Returns the fingerprint of plain bytes. Never equal to a structural one but by accident.
    pub fn bytes(&self, bytes: &[u8]) -> u128 {
        self.hash(&[&[Tag::Bytes as u8], bytes])
    }

    /// Returns the fingerprint of a JSON number by its value: that of `7`, `7.0` and `70e-1` is the
    /// same, and no digit is lost. `None` if its exponent is too large.
    pub fn number(&self, text: &str) -> Option<u128> {
        let number = Decimal::read(text)?;
        let sign = u128::from(number.negative) << 64;
        let scale = sign | u128::from(number.exponent.cast_unsigned());
        Some(self.behind(Tag::Decimal, [2, scale], &number.digits))
    }

    /// Returns the structural fingerprint of a JSON text that follows two words: what it is the
    /// text of, and for which principal. `None` as for [`json`](Self::json).
    pub fn json_behind(&self, words: [u128; 2], text: &[u8]) -> Option<u128> {
        let mut canonical = Canonical::new();
        scan(text, &mut canonical)?;
        Some(self.behind(Tag::JsonBehind, words, &canonical))
    }

    fn behind(&self, tag: Tag, [first, second]: [u128; 2], bytes: &[u8]) -> u128 {
        // whole words, so that the hasher reads the bytes as words too
        let mut head = [tag as u8; 40];
        head[8..24].copy_from_slice(&first.to_le_bytes());
        head[24..].copy_from_slice(&second.to_le_bytes());
        self.hash(&[&head, bytes])
    }

    fn hash(&self, parts: &[&[u8]]) -> u128 {
        let mut hasher = self.0;
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish128().into()
    }

    /// Returns one fingerprint of several, in this order.
    pub fn combine(&self, parts: &[u128]) -> u128 {
        // a single write: each one has a fixed cost
        let mut bytes: SmallVec<[u8; 256]> = smallvec![Tag::Combined as u8];
        for part in parts {
            bytes.extend_from_slice(&part.to_le_bytes());
        }
        self.hash(&[&bytes])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn json(text: &str) -> Option<u128> {
        FingerprintKey::new(7, 11).json(text.as_bytes())
    }

    #[test]
    fn different_values_differ() {
        let values = concat!(
            r#"1 1.0 1e0 -0 0 "1" [1] [[1]] [1,1] {} [] null "null" true false [null] {"a":1} "#,
            r#"{"a":"1"} ["a",1] {"a":{"b":1}} {"a":1,"b":1} "" {"":""} 9007199254740993 "#,
            "9007199254740992 123456789012345678901234567890 123456789012345678901234567891",
        );
        let values: Vec<_> = values.split(' ').collect();
        for (i, left) in values.iter().enumerate() {
            for right in &values[i + 1..] {
                assert_ne!(json(left).unwrap(), json(right).unwrap(), "{left} {right}");
            }
        }
    }

    #[test]
    fn what_two_parsers_may_read_differently_has_no_identity() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(json(&deep(128)).is_some());
        let bad = r#"{"a":1,"\u0061":2} "\ud800" { [1,] {"a"} 01 - 1. 1e nul "\ "a 1,2"#;
        for text in bad.split(' ').chain(["", "1 2", &deep(129)]) {
            assert_eq!(json(text), None, "{text:?}");
        }
    }

    /// Any JSON, often with what a scan of its text may take for structure.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let text = || prop_oneof![any::<String>(), "[a{}\\[\\]\",:\\\\ é\u{1}]{0,8}|_meta|k"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes a value with members in reverse order and every character escaped.
    fn respell(value: &Value) -> String {
        let escape = |text: &str| {
            let units: String = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect();
            format!("\"{units}\"")
        };
        match value {
            Value::String(text) => escape(text),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(respell).collect();
                format!("[ {} ]", items.join(" , "))
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    format!("{} :\t{}", escape(name), respell(value))
                };
                let all: Vec<String> = members.iter().rev().map(member).collect();
                format!("{{\n{}}}", all.join(","))
            }
            other => other.to_string(),
        }
    }

    #[test]
    fn those_whom_bytes_are_for_are_told_apart() {
        let key = FingerprintKey::new(7, 11);
        let of = |what, whom, text: &[u8]| key.json_behind([what, whom], text).unwrap();
        let mut all = [(1, 2), (1, 3), (2, 2), (2, 1)]
            .map(|(a, b)| of(a, b, b"1"))
            .to_vec();
        let other = FingerprintKey::new(7, 12).bytes(b"1");
        all.extend([
            of(1, 2, b"2"),
            key.bytes(b"1"),
            key.number("1").unwrap(),
            other,
        ]);
        for (number, one) in all.iter().enumerate() {
            assert!(!all[number + 1..].contains(one), "{number}");
        }
    }

    proptest! {
        #[test]
        fn equal_values_meet_however_they_are_spelt(value in any_json()) {
            prop_assert_eq!(json(&value.to_string()).unwrap(), json(&respell(&value)).unwrap());
        }

        #[test]
        fn unequal_values_do_not_meet(left in any_json(), right in any_json()) {
            let equal = left == right;
            prop_assert_eq!(json(&left.to_string()) == json(&right.to_string()), equal);
        }

        #[test]
        fn any_bytes_give_an_answer_that_agrees_with_the_parser(
            text in prop::collection::vec(any::<u8>(), 0..64),
            near in "[\\[\\]{}\":,0-9eE.+\\-a\\\\u \t]{0,40}",
        ) {
            let _ = json(&near);
            if FingerprintKey::new(7, 11).json(&text).is_some() && std::str::from_utf8(&text).is_ok() {
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok());
            }
        }
    }
}
