//! Finds credentials by their shape, whatever they are named.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::known::{HIDDEN, without};
use super::text::quoted;
use crate::members::Text;

/// A text without the credentials that were in it.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "what was found, and what is left"
)]
pub struct WithoutCredentials {
    /// What the first one is, such as `a private key`.
    pub first: &'static str,
    /// The text, with `[redacted]` in place of each.
    pub text: String,
}

/// Shows no text: what is left of it may be secret too.
impl std::fmt::Debug for WithoutCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WithoutCredentials")
            .field(&self.first)
            .finish()
    }
}

/// Leaves out of a JSON text, or of a part of one, what has the shape of a credential: numbers of
/// payment cards (by prefix, length and Luhn's check digit), tokens of GitHub (the classic ones by
/// their CRC-32) and Slack, access key ids of AWS, private keys in PEM, and signed JWTs. `None` if
/// there are none. Every other byte stays as it is, and JSON stays JSON: a number becomes a text.
///
/// A credential of another shape is not found, so this is a safeguard.
///
/// ```
/// use callward_core::redact::credentials;
///
/// let found = credentials(r#"{"card": 4111111111111111, "n": 4111111111111112}"#).unwrap();
/// assert_eq!(found.first, "a card number");
/// assert_eq!(found.text, r#"{"card": "[redacted]", "n": 4111111111111112}"#);
/// ```
pub fn credentials(json: &str) -> Option<WithoutCredentials> {
    let (mut out, mut first, mut rest) = (String::new(), None, json);
    while let Some(start) = rest.find(|c: char| c == '"' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(start);
        let (token, after) = token.split_at(end_of_token(token));
        let shown = if token.len() < SHORTEST {
            None
        } else if token.starts_with('"') {
            // one that is not Unicode, or is cut, is looked at as it is written
            match serde_json::from_str::<Text<'_>>(token) {
                Ok(Text(text)) => hide(&text).map(|(what, shown)| (what, quoted(&shown))),
                Err(_) => hide(token),
            }
        } else {
            let is_whole = token.bytes().all(|byte| byte.is_ascii_digit());
            let shown = hide(token).filter(|_| is_whole);
            shown.map(|(what, _)| (what, quoted(HIDDEN)))
        };
        match shown {
            // the sign of a number
            Some((what, shown)) => {
                out.push_str(before.strip_suffix('-').unwrap_or(before));
                out.push_str(&shown);
                first = first.or(Some(what));
            }
            None => out.extend([before, token]),
        }
        rest = after;
    }
    out.push_str(rest);
    first.map(|first| WithoutCredentials { first, text: out })
}

/// The length of the shortest credential.
const SHORTEST: usize = 13;

/// Returns the length of the string or number that a text begins with.
fn end_of_token(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    match text.strip_prefix('"') {
        Some(inner) => inner.find(is_end).map_or(text.len(), |end| end + 2),
        None => {
            let is_of_number = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            text.find(|c| !is_of_number(c)).unwrap_or(text.len())
        }
    }
}

static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?su:.)*?(?:-----END [A-Z0-9 ]*-----|\z)",
        r"gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}",
        r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
        r"xox[a-z](?:-[0-9A-Za-z]+){3,}|hooks\.slack\.com/services(?:/[0-9A-Za-z]+){3}",
        r"eyJ[\w-]{10,}\.ey[\w-]{6,}\.[\w-]{16,}",
        r"\b[0-9](?:[ -]?[0-9]){12,}\b",
    ];
    // ASCII: a letter of another script ends a word
    Regex::new(&format!("(?-u){}", shapes.join("|"))).ok()
});

/// Leaves the credentials out of a text. Returns what the first is, too.
fn hide(text: &str) -> Option<(&'static str, String)> {
    let found = SHAPES.iter().flat_map(|shapes| shapes.find_iter(text));
    let mut first = None;
    let parts = found.flat_map(|found| {
        // the digits of a fraction are no number of their own
        let is_fraction = text[..found.start()].ends_with('.');
        let (what, parts) = shape(found.as_str())
            .filter(|_| !is_fraction)
            .unwrap_or_default();
        if !parts.is_empty() {
            first = first.or(Some(what));
        }
        let place = move |part: Range<usize>| found.start() + part.start..found.start() + part.end;
        parts.into_iter().map(place)
    });
    let parts = parts.collect();
    first.map(|first| (first, without(text, parts).into_owned()))
}

/// Returns what a text is that a pattern found, and which parts of it, if the checks of the format
/// hold.
fn shape(found: &str) -> Option<(&'static str, Vec<Range<usize>>)> {
    let whole = 0..found.len();
    let what = match found.as_bytes() {
        [b'-', ..] => "a private key",
        [b'g', b'h', ..] => return has_checksum(found).then_some(("a GitHub token", vec![whole])),
        [b'g', ..] => "a GitHub token",
        [b'A', ..] => "an AWS access key id",
        [b'x' | b'h', ..] => "a Slack credential",
        [b'e', ..] => "a JWT",
        _ => return Some(("a card number", cards(found))),
    };
    Some((what, vec![whole]))
}

/// Returns `true` if a token of GitHub ends with the CRC-32 of the text between its prefix and the
/// end, as six digits of base 62.
fn has_checksum(token: &str) -> bool {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let (Some(random), Some(check)) = (token.get(4..34), token.get(34..40)) else {
        return false;
    };
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: u8| (0..8).fold(crc ^ u32::from(byte), step);
    let crc = !random.bytes().fold(u32::MAX, byte);
    let digit = |sum: u64, byte| Some(sum * 62 + DIGITS.iter().position(|it| *it == byte)? as u64);
    check.bytes().try_fold(0, digit) == Some(crc.into())
}

/// Finds the numbers of cards in groups of digits: whole groups that begin as those of a network
/// do, are as long, and end with the check digit.
fn cards(groups: &str) -> Vec<Range<usize>> {
    let digits: Vec<_> = groups
        .bytes()
        .enumerate()
        .filter(|(_, byte)| byte.is_ascii_digit())
        .collect();
    let starts_group = |at: usize| at == 0 || digits[at].0 > digits[at - 1].0 + 1;
    let is_card = |start: usize, length: usize| {
        let number = digits.get(start..start + length)?;
        let ends = start + length == digits.len() || starts_group(start + length);
        let digit = |sum: u32, (_, byte): &(_, u8)| sum * 10 + u32::from(byte - b'0');
        let prefix = number.iter().take(4).fold(0, digit);
        let lengths: &[_] = match prefix {
            4000..=4999 => &[13, 16, 19],
            5100..=5599 | 2221..=2720 | 3528..=3589 | 6011 | 6440..=6599 => &[16],
            3400..=3499 | 3700..=3799 => &[15],
            3000..=3059 | 3600..=3699 | 3800..=3899 => &[14],
            _ => &[],
        };
        let luhn = number.iter().rev().enumerate().map(|(place, (_, byte))| {
            let digit = u32::from(byte - b'0') << (place % 2);
            digit / 10 + digit % 10
        });
        let (first, last) = (number.first()?.0, number.last()?.0);
        (ends && lengths.contains(&length) && luhn.sum::<u32>() % 10 == 0)
            .then_some(first..last + 1)
    };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < digits.len() {
        let lengths = [13, 14, 15, 16, 19].into_iter();
        let mut cards = lengths.filter_map(|length| Some((is_card(at, length)?, length)));
        let card = cards.next().filter(|_| starts_group(at));
        at += card.as_ref().map_or(1, |(_, length)| *length);
        found.extend(card.map(|(part, _)| part));
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const FOUND: &str = r"
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 => a GitHub token
AKIAIOSFODNN7EXAMPLE => an AWS access key id
xoxb-1234567890-1234567890-AbCdEf => a Slack credential
hooks.slack.com/services/T000/B000/XXXX => a Slack credential
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop => a JWT
-----BEGIN RSA PRIVATE KEY-----\nAä==\n-----END RSA PRIVATE KEY----- => a private key
4111111111111111 => a card number
3782 822463 10005 => a card number
5555-5555-5555-4444 => a card number";

    fn credential() -> impl Iterator<Item = (String, &'static str)> {
        let rows = FOUND.lines().filter_map(|row| row.split_once(" => "));
        rows.map(|(text, what)| (text.replace("\\n", "\n"), what))
    }

    #[test]
    fn each_shape_is_found_wherever_it_stands() {
        for (secret, what) in credential() {
            let inner = json!({"t": secret}).to_string();
            for json in [
                json!(secret),
                json!([{"x": format!("a {secret} b")}]),
                json!(inner),
            ] {
                let found = credentials(&json.to_string());
                let found = found.unwrap_or_else(|| panic!("{json}"));
                assert_eq!(found.first, what);
                assert!(found.text.contains(HIDDEN), "{}", found.text);
                serde_json::from_str::<Value>(&found.text).unwrap();
                assert_eq!(credentials(&found.text), None, "{}", found.text);
            }
        }
        let escaped = r#"{"a" : "\u0067hp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17\n" , "b":1e2}"#;
        let found = credentials(escaped).unwrap().text;
        assert_eq!(found, r#"{"a" : "[redacted]\n" , "b":1e2}"#);
        let cut = r#""4111 1111 1111 1111 \ud800" "ok"#;
        assert_eq!(credentials(cut).unwrap().text, r#""[redacted] \ud800" "ok"#);
        let among = r#"["order 12 4111 1111 1111 1111 7", -4111111111111111]"#;
        assert_eq!(
            credentials(among).unwrap().text,
            r#"["order 12 [redacted] 7", "[redacted]"]"#
        );
        let two = r#""4111111111111111 0 5555-5555-5555-4444 3782 822463 10005""#;
        assert_eq!(
            credentials(two).unwrap().text,
            r#""[redacted] 0 [redacted] [redacted]""#
        );
    }

    #[test]
    fn what_fails_a_check_or_is_part_of_a_word_stays() {
        for text in [
            "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18",
            "XAKIAIOSFODNN7EXAMPLE",
            "4111111111111112",
            "41111111111111110",
            "1732673909123",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.",
            "-----BEGIN PUBLIC KEY-----",
            "xoxb-1",
            "0.4111111111111111",
            "-0.4111111111111111e1",
        ] {
            // as it is, which may be a number, and as a part of a word
            for text in [text.to_owned(), json!(format!("a{text}")).to_string()] {
                assert_eq!(credentials(&text), None, "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_credential_is_left_and_json_stays_json(
            texts in prop::collection::vec((r#"[ -~é\n]{0,12}"#, 0..20_usize), 1..6),
        ) {
            let all: Vec<_> = credential().map(|(secret, _)| secret).collect();
            let text: String = texts.iter().map(|(text, which)| {
                let secret = all.get(*which).map_or("", String::as_str);
                format!("{text} {secret} ")
            }).collect();
            let json = json!({"a": [&text], "n": 1.50, &text: null}).to_string();
            if let Some(found) = credentials(&json) {
                prop_assert_eq!(credentials(&found.text), None);
                let value: Value = serde_json::from_str(&found.text).unwrap();
                prop_assert_eq!(&value["n"], &json!(1.5));
            }
        }
    }
}
