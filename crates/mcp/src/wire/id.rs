//! The id of a request.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

/// A request's id: a string or a number, written back exactly as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Repr);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// A number whose only spelling is its decimal digits, so that it needs no allocation.
    Number(u64),
    /// Any other number, or a string with its quotes.
    Raw(Box<str>),
}

impl RequestId {
    /// Makes a number an id.
    pub(crate) const fn number(number: u64) -> Self {
        Self(Repr::Number(number))
    }

    /// Reads a raw JSON token; nothing unless it is a string or a number.
    pub(crate) fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        let first = raw.as_bytes().first()?;
        if !(first.is_ascii_digit() || *first == b'-' || *first == b'"') {
            return None;
        }
        serde_json::from_str::<&RawValue>(raw).ok()?;
        // JSON allows no leading zero, so digits alone have one spelling only
        Some(Self(match raw.parse::<u64>() {
            Ok(number) => Repr::Number(number),
            Err(_) => Repr::Raw(raw.into()),
        }))
    }

    /// Returns the number, if the id is a whole one that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Raw(_) => None,
        }
    }

    /// Returns the id as a JSON token.
    #[must_use]
    pub fn to_raw(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Number(number) => Cow::Owned(number.to_string()),
            Repr::Raw(raw) => Cow::Borrowed(raw),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Raw(raw) => f.write_str(raw),
        }
    }
}
