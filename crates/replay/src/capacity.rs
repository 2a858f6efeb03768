//! The capacity of a cache.

use std::fmt;
use std::str::FromStr;

use bytesize::ByteSize;
use callward_core::InvalidValue;
use serde::Serialize;

/// The capacity of a cache, in entries of any size or in bytes.
///
/// ```
/// use callward_replay::Capacity;
///
/// assert_eq!("1000".parse(), Ok(Capacity::Entries(1000)));
/// assert_eq!("64 KiB".parse(), Ok(Capacity::Bytes(65_536)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "unit", content = "capacity", rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are two units")]
pub enum Capacity {
    /// A number of entries.
    Entries(u64),
    /// A number of bytes, including the bookkeeping of each entry.
    Bytes(u64),
}

impl Capacity {
    /// Returns the bare number.
    #[must_use]
    pub fn amount(self) -> u64 {
        match self {
            Self::Entries(amount) | Self::Bytes(amount) => amount,
        }
    }
}

impl FromStr for Capacity {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if let Ok(entries) = text.parse() {
            return Ok(Self::Entries(entries));
        }
        // a text without a unit is an invalid number of entries
        let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
        match text.parse::<ByteSize>() {
            Ok(bytes) if has_unit => Ok(Self::Bytes(bytes.as_u64())),
            _ => Err(InvalidValue::new(
                "expected a number of entries, such as 1000, or of bytes with its unit, such as 64MiB",
            )),
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(entries) => write!(f, "{entries}"),
            Self::Bytes(bytes) => write!(f, "{}", ByteSize(*bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_entries_and_bytes() {
        for (text, want) in [
            ("0", Some(Capacity::Entries(0))),
            ("128", Some(Capacity::Entries(128))),
            ("10B", Some(Capacity::Bytes(10))),
            ("1MB", Some(Capacity::Bytes(1_000_000))),
            ("1 MiB", Some(Capacity::Bytes(1 << 20))),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("many", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(text.parse().ok(), want, "{text:?}");
        }
    }
}
