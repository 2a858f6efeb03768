//! Finds members in a text, and detects where parsers would disagree.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::ArgumentPath;
use crate::members::{Members, Text};

/// The value at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// Nothing.
    Absent,
    /// This value, for every reader.
    Value(&'a RawValue),
    /// It depends on the reader.
    Doubtful,
}

impl<'a> Members<'a> {
    /// Returns the member of a name. Only one member may match the name, and its spelling must be
    /// exact.
    pub(super) fn get(&self, name: &str) -> Found<'a> {
        let mut meant = self
            .iter()
            .filter(|(known, _)| may_be_taken_for(known, name));
        match (meant.next(), meant.next()) {
            (None, _) => Found::Absent,
            (Some((known, value)), None) if known == name => Found::Value(value),
            _ => Found::Doubtful,
        }
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

impl ArgumentPath {
    /// Returns the raw value at this place in a call's arguments. `None` if it is missing, if they
    /// are not a JSON object, and wherever readers may disagree.
    ///
    /// ```
    /// use callward_core::refine::ArgumentPath;
    ///
    /// let id = ArgumentPath::new("/account/id")?;
    /// assert_eq!(id.find(br#"{"account": {"id": 7.0}}"#), Some("7.0"));
    /// assert_eq!(id.find(br#"{"account": {"id": 7, "ID": 8}}"#), None);
    /// # Ok::<(), callward_core::InvalidValue>(())
    /// ```
    pub fn find<'a>(&self, arguments: &'a [u8]) -> Option<&'a str> {
        let text = std::str::from_utf8(arguments).ok()?;
        match Members::read(text).ok()?.find(self) {
            Found::Value(value) => Some(value.get()),
            Found::Absent | Found::Doubtful => None,
        }
    }
}

/// Descends into a value: by name into an object, by number into an array.
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

/// Returns `true` if a string may hold an array or object as JSON: models pack arguments so, and
/// some servers unpack them.
pub(super) fn may_be_packed(value: &str) -> bool {
    string(value).is_none_or(|inner| inner.trim_start().starts_with(['{', '[']))
}

/// Reads an index as RFC 6901 spells it: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (token == "0" || !token.starts_with('0'));
    plain.then(|| token.parse().ok())?
}

/// Returns `true` if a reader may take one name for the other.
pub(super) fn may_be_taken_for(left: &str, right: &str) -> bool {
    left == right || as_taken(left).eq(as_taken(right))
}

/// A name as the least strict reader understands it. Some do not look at the case, also beyond
/// ASCII (`ſ` is an `s`, the Kelvin sign a `k`); some end a name at a control character.
pub(super) fn as_taken(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .take_while(|char| !char.is_control())
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}
