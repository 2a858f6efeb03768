//! Finding members in a text, and noticing where parsers would disagree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::ArgumentPath;

/// What stands at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// Nothing.
    Absent,
    /// This value, whoever reads it.
    Value(&'a RawValue),
    /// It depends on the reader.
    Doubtful,
}

/// A JSON string; borrowed unless it holds an escape.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of one object in their order, duplicates included.
pub(super) struct Members<'a>(SmallVec<[(Cow<'a, str>, &'a RawValue); 8]>);

impl<'a> Members<'a> {
    /// Reads a text that must hold exactly one object.
    pub(super) fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns what stands under a name. There must be one member that may be meant by it, and it
    /// must be spelled exactly so.
    pub(super) fn get(&self, name: &str) -> Found<'a> {
        let mut meant = self
            .0
            .iter()
            .filter(|(known, _)| differs_by_case_only(known, name));
        match (meant.next(), meant.next()) {
            (None, _) => Found::Absent,
            (Some((known, value)), None) if known == name => Found::Value(value),
            _ => Found::Doubtful,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Follows a path.
    pub(super) fn find(&self, path: &ArgumentPath) -> Found<'a> {
        let mut tokens = path.tokens().iter();
        let mut found = tokens.next().map_or(Found::Absent, |name| self.get(name));
        for token in tokens {
            let Found::Value(value) = found else {
                return found;
            };
            found = step(value.get(), token);
        }
        found
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = SmallVec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(Object)
    }
}

/// Goes on into a value: by name into an object, by number into an array.
fn step<'a>(value: &'a str, token: &str) -> Found<'a> {
    match value.as_bytes().first() {
        Some(b'{') => Members::read(value).map_or(Found::Doubtful, |members| members.get(token)),
        Some(b'[') => match elements(value) {
            Some(elements) => index(token)
                .and_then(|index| elements.get(index).copied())
                .map_or(Found::Absent, Found::Value),
            None => Found::Doubtful,
        },
        Some(b'"') if may_be_packed(value) => Found::Doubtful,
        _ => Found::Absent,
    }
}

/// Reads an array.
pub(super) fn elements(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// Reads a string; `None` if its escapes are no Unicode.
pub(super) fn string(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str(text).ok().map(|Text(text)| text)
}

/// Says whether a string may hold an array or object as JSON: models pack arguments so, and some
/// servers unpack them.
pub(super) fn may_be_packed(value: &str) -> bool {
    string(value).is_none_or(|inner| inner.trim_start().starts_with(['{', '[']))
}

/// Reads an index as RFC 6901 spells it: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (token == "0" || !token.starts_with('0'));
    plain.then(|| token.parse().ok())?
}

/// Compares without regard to case, as the laxest parsers do: `ſ` is an `s`, the Kelvin sign a `k`.
pub(super) fn differs_by_case_only(left: &str, right: &str) -> bool {
    fn folded(text: &str) -> impl Iterator<Item = char> {
        text.chars()
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
    }
    left == right || folded(left).eq(folded(right))
}
