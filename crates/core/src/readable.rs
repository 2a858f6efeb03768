//! JSON that is valid and that parsers refuse all the same: values that nest too deep, and escapes of
//! half a character. What a server wrote goes to clients as it came, and with it the rest of the message
//! would be lost to them.

use bytes::Bytes;
use memchr::{memchr, memchr2};

/// How deep what a server answers may nest: parsers of clients often refuse a message of 128 levels,
/// and some of those are around the answer.
pub const MAX_DEPTH: usize = 120;

/// Says whether the arrays and objects of a JSON text nest deeper than so many levels.
#[must_use]
pub fn nests_deeper(raw: &[u8], levels: usize) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = raw.get(at) {
        match byte {
            b'{' | b'[' if depth == levels => return true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(raw, at + 1),
            _ => {}
        }
        at += 1;
    }
    false
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

/// Replaces each escape of a lone surrogate in a JSON text by that of the replacement character, which
/// is as long. Copies the text only if there is one.
#[must_use]
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
            assert!(!nests_deeper(text.as_bytes(), levels), "{text}");
            assert!(levels == 0 || nests_deeper(text.as_bytes(), levels - 1));
        }
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_is_kept() {
        for (text, want) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\udc00""#, r#""\ufffd""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (
                r#""\ud800\ud83d\ude00\ude00""#,
                r#""\ufffd\ud83d\ude00\ufffd""#,
            ),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800""#, r#""\\\ufffd""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\"#, r#""\"#),
        ] {
            let raw = Bytes::from_static(text.as_bytes());
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
        fn arbitrary_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..48)) {
            let _ = nests_deeper(&raw, 1);
            let _ = without_lone_surrogates(raw.into());
        }
    }
}
