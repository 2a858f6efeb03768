//! Durations and sizes as people write them: `"250ms"`, `"30s"`, `"64MiB"`, or a plain number of
//! bytes.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Reads a duration with its unit.
///
/// # Errors
///
/// A sentence that says what was expected.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("expected a duration with its unit, such as \"250ms\", \"30s\" or \"5m\", found {text:?}")
    })
}

/// Writes a duration the way it is read.
pub(crate) fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Writes a size the way it is read.
pub(crate) fn show_size(bytes: u64) -> String {
    ByteSize::b(bytes).to_string()
}

/// Deserialises a duration from its text.
pub(crate) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration with its unit, such as \"250ms\", \"30s\" or \"5m\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).map_err(E::custom)
        }
    }

    from.deserialize_any(Text)
}

/// Deserialises a duration that may be left out.
pub(crate) fn some_duration<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberOrText;

        impl Visitor<'_> for NumberOrText {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"64MiB\", or a number of bytes")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Size, E> {
                u64::try_from(number)
                    .map(Size)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                text.parse::<ByteSize>()
                    .map(|size| Size(size.as_u64()))
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        from.deserialize_any(NumberOrText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit_and_not_without() {
        for (text, want) in [
            ("250ms", Duration::from_millis(250)),
            ("30s", Duration::from_secs(30)),
            ("5m", Duration::from_secs(300)),
            ("1m 30s", Duration::from_secs(90)),
        ] {
            assert_eq!(parse_duration(text), Ok(want));
        }
        for text in ["30", "", "soon", "-1s", "5 parsecs"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("\"30s\""), "{error}");
        }
        assert_eq!(show_duration(Duration::from_secs(90)), "1m 30s");
    }

    #[test]
    fn sizes_are_read_as_text_and_as_numbers() {
        #[derive(serde::Deserialize)]
        struct Table {
            size: Size,
        }
        let read = |text: &str| toml::from_str::<Table>(text).map(|table| table.size.0);
        assert_eq!(read("size = \"64MiB\"").unwrap(), 64 << 20);
        assert_eq!(read("size = \"1 MB\"").unwrap(), 1_000_000);
        assert_eq!(read("size = 512").unwrap(), 512);
        for text in ["size = -1", "size = \"big\"", "size = true"] {
            let error = read(text).unwrap_err();
            assert!(error.message().contains("64MiB"), "{error}");
        }
    }
}
