//! Valid JSON that many parsers refuse: values that nest too deep, numbers that are too large, and
//! escapes of half a character. Clients receive what a server wrote byte for byte, and would lose
//! the rest of the message with it.

use bytes::Bytes;
use memchr::{memchr, memchr2};

/// The maximum depth of an answer: parsers of clients often refuse a message of 128 levels, and the
/// envelope has some of them.
const MAX_DEPTH: usize = 120;

/// The maximum depth of the definition of a tool: clients get it inside a list, and one that they
/// cannot read makes the whole list unreadable.
const MAX_DEFINITION_DEPTH: usize = 64;

/// Why clients may be unable to read a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Its arrays and objects nest deeper than this many levels.
    #[error("nests deeper than {0} levels")]
    Depth(usize),
    /// One of its numbers is infinite as an [`f64`].
    #[error("has a number beyond 1.8e308 or -1.8e308, the range of a 64-bit float")]
    Number,
}

/// Checks how deep the arrays and objects of a JSON text nest, 120 levels at most, and how large
/// its numbers are.
///
/// # Errors
///
/// Why clients may be unable to read the text: its depth, or else a number.
pub fn check(raw: &[u8]) -> Result<(), Unreadable> {
    check_within(raw, MAX_DEPTH)
}

/// As [`check`] for the definition of a tool, with 64 levels at most.
///
/// # Errors
///
/// As [`check`].
pub fn check_definition(raw: &[u8]) -> Result<(), Unreadable> {
    check_within(raw, MAX_DEFINITION_DEPTH)
}

fn check_within(raw: &[u8], levels: usize) -> Result<(), Unreadable> {
    let (mut depth, mut at) = (0_usize, 0);
    let mut numbers = Ok(());
    while let Some(byte) = raw.get(at) {
        match byte {
            b'{' | b'[' if depth == levels => return Err(Unreadable::Depth(levels)),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(raw, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(raw, at);
                if !is_finite(&raw[at..end]) {
                    numbers = Err(Unreadable::Number);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    numbers
}

/// Returns where a number ends that begins at `at`.
fn end_of_number(raw: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'0'..=b'9' | b'e' | b'E');
    let rest = raw[at..].iter().position(|byte| !is_part(byte));
    rest.map_or(raw.len(), |length| at + length)
}

/// Returns `true` if a number is finite as an `f64`.
fn is_finite(number: &[u8]) -> bool {
    // less than 1e308 without an exponent
    if number.len() <= 308 && !number.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    let text = std::str::from_utf8(number).ok();
    let read = text.and_then(|text| text.parse::<f64>().ok());
    read.is_none_or(f64::is_finite)
}

/// Returns where the closing quote of a string is, which begins at `at`.
fn end_of_string(raw: &[u8], mut at: usize) -> usize {
    while let Some(found) = raw.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match raw[at] {
            b'"' => return at,
            _ => at += 2, // an escape
        }
    }
    raw.len()
}

/// Replaces each escape of a lone surrogate in a JSON text by that of the replacement character,
/// which is as long. Copies the text only if there is one.
pub fn without_lone_surrogates(raw: Bytes) -> Bytes {
    let mut replaced: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = raw.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let escape = at + found;
        at = match (unit(&raw, escape), unit(&raw, escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => escape + 12,
            (Some(0xD800..=0xDFFF), _) => {
                let text = replaced.get_or_insert_with(|| raw.to_vec());
                text[escape..escape + 6].copy_from_slice(br"\ufffd");
                escape + 6
            }
            _ => escape + 2,
        };
    }
    replaced.map_or(raw, Bytes::from)
}

/// Reads the escape `\uXXXX` at this place.
fn unit(raw: &[u8], at: usize) -> Option<u16> {
    let digits = raw.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn levels_are_counted_outside_of_strings() {
        for (text, levels) in [
            ("1", 0),
            ("[[]]", 2),
            (r#"{"a":[{}],"b":[]}"#, 3),
            (r#"["[[[","\"[[","\\",[]]"#, 2),
            (r#"["[[["#, 1),
            (r#"["\"#, 1),
        ] {
            assert_eq!(check_within(text.as_bytes(), levels), Ok(()), "{text}");
            if let Some(less) = levels.checked_sub(1) {
                assert_eq!(
                    check_within(text.as_bytes(), less),
                    Err(Unreadable::Depth(less))
                );
            }
        }
    }

    #[test]
    fn a_number_that_is_infinite_as_a_float_is_found() {
        let (most, long) = ("9".repeat(308), "9".repeat(5000));
        let readable = "0 -12.5e-3 1e308 1.7976931348623157E+308 1e-400 0e99999999999999999999 \
             MOST LONGe-4900 0.LONG";
        let infinite = "-1e309 1E400 1e99999999999999999999 MOST9 LONG -LONG";
        for (numbers, is_readable) in [(readable, true), (infinite, false)] {
            let numbers = numbers.replace("MOST", &most).replace("LONG", &long);
            for number in numbers.split(' ') {
                let object = format!(r#"{{"a":["1e400",true,{number} ],"b":1}}"#);
                for text in [number, &format!("[{number}]"), &object] {
                    let found = check_within(text.as_bytes(), 9);
                    assert_eq!(found.is_ok(), is_readable, "{text}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_is_kept() {
        let rows = r#"
"a\ud800b" => "a\ufffdb"
"\udc00" => "\ufffd"
"\uD83D\uDE00" => "\uD83D\uDE00"
"\ud800\ud83d\ude00\ude00" => "\ufffd\ud83d\ude00\ufffd"
"\\ud800" => "\\ud800"
"\\\ud800" => "\\\ufffd"
"\ud8 => "\ud8
"\ => "\"#;
        for (text, want) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            let raw = Bytes::copy_from_slice(text.as_bytes());
            assert_eq!(without_lone_surrogates(raw), want.as_bytes(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_escapes_become_text_that_parsers_read(units in prop::collection::vec(0xD700_u16..0xE100, 0..8)) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let raw = without_lone_surrogates(format!("\"{text}\"").into());
            let read: String = serde_json::from_slice(&raw).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn what_the_parser_takes_for_numbers_is_judged_as_it_does(text in "-?(0|[1-9][0-9]{0,3})([.][0-9]{1,3})?(e[+-]?[0-9]{1,3})?") {
            let is_read = serde_json::from_str::<f64>(&text).is_ok();
            prop_assert_eq!(check_within(text.as_bytes(), 0).is_ok(), is_read, "{}", text);
        }

        #[test]
        fn arbitrary_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..48)) {
            let _ = check_within(&raw, 1);
            let _ = without_lone_surrogates(raw.into());
        }
    }
}
