//! Durations, sizes and shares as people write them in a config: `"250ms"`, `"64MiB"`, `0.2`.
//!
//! Each module is for `#[serde(with = ...)]`: what it writes, it reads.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

const DURATION: &str = "a duration with its unit, such as \"250ms\", \"30s\" or \"5m\"";

/// Reads a duration with its unit.
///
/// # Errors
///
/// A sentence with what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| format!("expected {DURATION}, found {text:?}"))
}

/// Writes a duration the way it is read.
pub fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Writes a size the way it is read.
pub fn show_size(bytes: u64) -> String {
    bytesize::ByteSize::b(bytes).to_string()
}

/// A duration, or one that may be absent.
#[expect(missing_docs, clippy::missing_errors_doc, reason = "what serde calls")]
pub mod duration {
    use super::{DURATION, Deserializer, Duration, Error, Serialize, Serializer, Visitor};
    use super::{fmt, parse_duration, show_duration};

    pub fn serialize<T, S>(time: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<Option<Duration>>,
        S: Serializer,
    {
        (*time).into().map(show_duration).serialize(to)
    }

    pub fn deserialize<'de, T: From<Duration>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(DURATION)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                parse_duration(text).map_err(E::custom)
            }
        }

        from.deserialize_any(Text).map(T::from)
    }
}

/// A number of bytes.
#[expect(missing_docs, clippy::missing_errors_doc, reason = "what serde calls")]
pub mod size {
    use super::{Deserializer, Error, Serializer, Unexpected, Visitor, fmt, show_size};

    pub fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&show_size(*bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        struct NumberOrText;

        impl Visitor<'_> for NumberOrText {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64MiB\", or a number of bytes")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
                Ok(number)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
                u64::try_from(number)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
                let size = text.parse::<bytesize::ByteSize>();
                size.map(|size| size.as_u64())
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(NumberOrText)
    }
}

/// A whole number of percent, written as a share from 0.0 to 1.0.
#[expect(missing_docs, clippy::missing_errors_doc, reason = "what serde calls")]
pub mod percent {
    use super::{Deserialize, Deserializer, Error, Serializer};

    pub fn serialize<S: Serializer>(percent: &u32, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(f64::from(*percent) / 100.0)
    }

    /// Rounds up: a share above 0 is at least 1 %.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let share = f64::deserialize(from)?;
        (0..=100)
            .find(|percent| f64::from(*percent) >= share * 100.0)
            .filter(|_| share >= 0.0)
            .ok_or_else(|| D::Error::custom("expected a share from 0.0 to 1.0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("1m 30s"), Ok(Duration::from_secs(90)));
        for text in ["30", "", "soon", "-1s", "5 parsecs"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("\"30s\""), "{error}");
        }
        assert_eq!(show_duration(Duration::from_secs(90)), "1m 30s");
    }

    #[test]
    fn sizes_are_texts_or_numbers() {
        let read = |text: &str| size::deserialize(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read("\"64MiB\"").unwrap(), 64 << 20);
        assert_eq!(read("\"1 MB\"").unwrap(), 1_000_000);
        assert_eq!(read("512").unwrap(), 512);
        for text in ["-1", "\"big\"", "true"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("64MiB"), "{error}");
        }
    }

    #[test]
    fn a_share_is_rounded_up_to_whole_percent() {
        let read = |text: &str| percent::deserialize(&mut serde_json::Deserializer::from_str(text));
        for (share, want) in [("0.0", 0), ("0.2", 20), ("0.005", 1), ("1", 100)] {
            assert_eq!(read(share).unwrap(), want, "{share}");
        }
        for share in ["1.5", "-0.1"] {
            assert!(read(share).is_err(), "{share}");
        }
    }
}
