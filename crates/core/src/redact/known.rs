//! Finds known secrets in texts, however they are spelled there.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

/// Leaves known secrets out of texts: with white space, `+` and backslashes anywhere in them, and
/// each character as it is, percent-encoded, or as an escape of JSON. What begins a secret at the
/// end of a text is left out too, if it is more than half of the secret or 16 bytes: others may
/// have cut the text.
///
/// ```
/// use callward_core::redact::Known;
///
/// let known = Known::new(["pa/55 word"]);
/// assert_eq!(known.hide("no pa%2F55+word"), "no [redacted]");
/// assert_eq!(known.hide(r#"["pa\/55\nword"]"#), r#"["[redacted]"]"#);
/// ```
#[derive(Default)]
pub struct Known(Vec<Secret>);

struct Secret {
    written: String,
    compared: Vec<u8>,
}

/// What replaces a secret.
pub(super) const HIDDEN: &str = "[redacted]";

/// What begins a secret is left out from this length on.
const MOST_BEGUN: usize = 16;

/// How much of a text is looked at, in bytes.
const MOST: usize = 256 << 10;

impl Known {
    /// Takes secrets. Shorter ones than 6 characters are found in other words.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets = secrets.into_iter().map(|secret| {
            let (written, mut compared) = (secret.as_ref().to_owned(), Vec::new());
            read(&written, |byte, _| compared.push(byte));
            Secret { written, compared }
        });
        let secrets = secrets.filter(|secret| !secret.compared.is_empty());
        Self(secrets.collect())
    }

    /// Rewrites a text, and cuts it after 256 KiB.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let (start, rest) = text.split_at(text.floor_char_boundary(MOST));
        let shown = self.hide_next(&mut Vec::new(), start, MOST_BEGUN);
        match rest.is_empty() {
            true => shown,
            false => (shown.into_owned() + "[cut]").into(),
        }
    }

    /// Rewrites the next of several texts, over which a secret may be written. What begins one is
    /// left out at the end from this length on. `before` has the end of those before, as it is
    /// compared.
    pub(super) fn hide_next<'t>(
        &self,
        before: &mut Vec<u8>,
        text: &'t str,
        begun: usize,
    ) -> Cow<'t, str> {
        let (bytes, mut parts) = (before, Vec::new());
        // the texts before end where this one begins
        let mut places = vec![0..0; bytes.len()];
        read(text, |byte, place| {
            bytes.push(byte);
            places.push(place);
        });
        for Secret { written, compared } in &self.0 {
            // one that looks like the end of an escape
            let exact = memmem::find_iter(text.as_bytes(), written);
            parts.extend(exact.map(|at| at..at + written.len()));
            let begins = |length: &usize| {
                compared
                    .get(..*length)
                    .is_some_and(|it| bytes.ends_with(it))
            };
            let begun = (begun.min(compared.len() / 2 + 1)..compared.len())
                .rev()
                .find(begins);
            let begun = begun.map(|length| (bytes.len() - length, length));
            let found = memmem::find_iter(bytes, compared).map(|at| (at, compared.len()));
            parts.extend(found.chain(begun).filter_map(|(at, length)| {
                Some(places.get(at)?.start..places.get(at + length - 1)?.end)
            }));
        }
        let longest = self.0.iter().map(|secret| secret.compared.len()).max();
        bytes.drain(..bytes.len().saturating_sub(longest.unwrap_or_default()));
        without(text, parts)
    }
}

/// Shows none of them.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// What is not compared as it is. `%25` stands for the sign of another escape, and what breaks off
/// at the end for nothing.
static ESCAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let json = r"(?:\\|%(?:25)*5[Cc])+(?:u([[:xdigit:]]{4})|u[[:xdigit:]]{0,3}\z|[nrt])?";
    let percent = r"%(?:25)*[[:xdigit:]]?\z|%(?:25)*([[:xdigit:]]{2})";
    Regex::new(&format!(r"{json}|{percent}|[\s\p{{Cc}}+\x{{fffd}}]+")).ok()
});

/// Passes on the bytes that are compared, with where they stand.
fn read(text: &str, mut each: impl FnMut(u8, Range<usize>)) {
    let literal = |part: Range<usize>, each: &mut dyn FnMut(u8, Range<usize>)| {
        let bytes = text.get(part.clone()).unwrap_or_default().bytes();
        bytes
            .zip(part)
            .for_each(|(byte, at)| each(byte, at..at + 1));
    };
    let mut at = 0;
    for found in ESCAPES
        .iter()
        .flat_map(|escapes| escapes.captures_iter(text))
    {
        let place = found.get_match().range();
        literal(at..place.start, &mut each);
        at = place.end;
        let code = |group| u32::from_str_radix(found.get(group)?.as_str(), 16).ok();
        let char = code(1).and_then(char::from_u32).map(String::from);
        let byte = code(2).and_then(|code| Some(vec![u8::try_from(code).ok()?]));
        let bytes = char.map(String::into_bytes).or(byte).unwrap_or_default();
        let is_compared = |byte: &u8| !matches!(byte, 0..=b' ' | b'+' | b'\\' | 0x7f);
        bytes
            .into_iter()
            .filter(is_compared)
            .for_each(|byte| each(byte, place.clone()));
    }
    literal(at..text.len(), &mut each);
}

/// Leaves parts out of a text.
pub(super) fn without(text: &str, mut parts: Vec<Range<usize>>) -> Cow<'_, str> {
    if parts.is_empty() {
        return text.into();
    }
    parts.sort_unstable_by_key(|part| part.start);
    let (mut out, mut end) = (String::new(), 0);
    for part in parts.into_iter().filter(|part| part.end > 0) {
        if part.start >= end {
            let start = text.floor_char_boundary(part.start);
            out.push_str(text.get(end..start).unwrap_or_default());
            out.push_str(HIDDEN);
        }
        end = end.max(text.ceil_char_boundary(part.end));
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_is_found_as_programs_write_it() {
        let rows = r#"
ab/cd+ef= ! ["ab\/cd+ef="] ! ["[redacted]"]
ab/cd+ef= ! ?k=ab%2fcd%2Bef%3D&x ! ?k=[redacted]&x
ab/cd+ef= ! ?k=ab%252Fcd%252Bef%253D ! ?k=[redacted]
a"b<c>d'e ! "a\"b\u003cc\u003Ed'e" ! "[redacted]"
a"b<c>d'e ! {"in": "{\"k\":\"a\\\"b\\u003cc>d'e\"}"} ! {"in": "{\"k\":\"[redacted]\"}"}
C:\new\tab ! 'C:\\new\\tab' %22C%3A%5Cnew%5Ctab%22 ! '[redacted]' %22[redacted]%22
100%25abc ! 100%25abc 100%2525abc ! [redacted] [redacted]
nothing12 ! \nothing12 ! \[redacted]
deadbeef ! 5%deadbeef ! 5%[redacted]
zwölf-elf ! zw\u00f6lf-elf zw%C3%B6lf-elf ! [redacted] [redacted]
abcdefgh ! abcde, abcde ! abcde, [redacted]
abcdefgh ! abcd abc%64%6 ! abcd abc%64%6
abcdefgh ! abcdefg ! [redacted]
0123456789abcdefghijklmnopqrstuvwxyz ! 0123456789abcde ! 0123456789abcde
0123456789abcdefghijklmnopqrstuvwxyz ! 0123456789abcdef ! [redacted]"#;
        for row in rows.lines().skip(1) {
            let [secret, text, shown] = *row.split(" ! ").collect::<Vec<_>>() else {
                panic!("{row}")
            };
            assert_eq!(Known::new([secret]).hide(text), shown, "{secret}");
        }
        let known = Known::new(["", " ", "abcdefgh", "cdefghij"]);
        assert_eq!(known.hide("abc\rdef\nghij k"), "[redacted] k");
        assert_eq!(format!("{known:?}"), "Known { .. }");
        let long = "ü".repeat(MOST) + "abcdefgh";
        assert_eq!(known.hide(&long), "ü".repeat(MOST / 2) + "[cut]");
    }

    /// One character of a secret as a program may write it.
    fn spelled(char: char, way: u8) -> String {
        let bytes = char.to_string().into_bytes();
        match way {
            0 => bytes.iter().map(|byte| format!("%{byte:02x}")).collect(),
            1 => bytes.iter().map(|byte| format!("%25{byte:02X}")).collect(),
            2 => format!("\\u{:04x}", u32::from(char)),
            3 if !char.is_alphanumeric() => format!("\\{char}"),
            4 => format!("\r\n{char}"),
            5 => format!("\\n\\r {char}"),
            _ => char.to_string(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_secret_shows_however_it_is_spelled_cut_or_broken(
            secret in "[a-zA-Z0-9/=.:_\"'&ü-]{8,40}",
            ways in prop::collection::vec(0_u8..9, 40),
            (before, after) in ("[<>(){}é, ]{0,12}", "[<>(){}é, ]{1,12}"),
            breaks in (0..100_usize, 0..100_usize),
        ) {
            let known = Known::new([&secret]);
            let pieces: Vec<_> = secret.chars().zip(ways).map(|(char, way)| spelled(char, way)).collect();
            let whole = pieces.concat();
            let shown = known.hide(&format!("{before}{whole}{after}")).into_owned();
            let (skipped, rest) = shown.strip_prefix(&*before).unwrap().split_once(HIDDEN).unwrap();
            prop_assert!(whole.starts_with(skipped) && skipped.len() < pieces[0].len(), "{}", shown);
            prop_assert_eq!(rest, &after);

            for cut in (pieces[0].len()..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
                let text = format!("{before}{}", &whole[..cut]);
                let shown = known.hide_next(&mut Vec::new(), &text, 1).into_owned();
                let (start, rest) = shown.split_once(HIDDEN).unwrap();
                prop_assert_eq!(start, format!("{before}{skipped}"), "{}", text);
                // of an escape, or white space
                prop_assert!(rest.len() < 6 && whole[..cut].ends_with(rest), "{}", text);
            }

            let (one, two) = (breaks.0 % pieces.len(), breaks.1 % pieces.len());
            let (first, rest) = pieces.split_at(one.min(two));
            let (second, third) = rest.split_at(one.max(two) - one.min(two));
            let mut progress = Vec::new();
            let lines = [before.clone() + &first.concat(), second.concat(), third.concat() + &after];
            let shown = lines.each_ref().map(|line| known.hide_next(&mut progress, line, 3));
            let shown = shown.concat().replace(HIDDEN, "").replace(['\r', '\n', ' '], "");
            let most = before.len() + pieces[..2].concat().len() + after.len() + 8;
            prop_assert!(shown.len() <= most, "{:?} as {}", lines, shown);
        }
    }
}
