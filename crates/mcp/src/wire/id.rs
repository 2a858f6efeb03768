//! The id of a request.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

/// A request's id: a string or a number, written back exactly as it came.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Makes a number an id.
    pub(crate) fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Reads a raw JSON token; nothing unless it is a string or a number.
    pub(crate) fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        let first = raw.as_bytes().first()?;
        if !(first.is_ascii_digit() || *first == b'-' || *first == b'"') {
            return None;
        }
        serde_json::from_str::<&RawValue>(raw).ok()?;
        Some(Self(raw.into()))
    }

    /// Returns the number, if the id is a whole one that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Returns the id as a JSON token.
    #[must_use]
    pub fn to_raw(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
