//! Names whose values are secrets.

use serde_json::value::RawValue;

use crate::infer::words;
use crate::members::Text;

/// Names as they are compared: letters and digits only, in lower case.
#[derive(Debug)]
pub(super) struct Names(Vec<String>);

/// Of the names that may be listed, those that count as words of their own only: `compass`,
/// `bypass` and `passenger` are no secrets.
const WORDS: [&str; 2] = ["pass", "pwd"];

impl Names {
    pub(super) fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut names: Vec<_> = names
            .into_iter()
            .map(|name| words::plain(name.as_ref()))
            .collect();
        // everything contains the empty name
        names.retain(|name| !name.is_empty());
        Self(names)
    }

    /// Returns `true` if a name contains one of these.
    pub(super) fn holds(&self, name: &str) -> bool {
        let whole = words::plain(name);
        self.0.iter().any(|own| match WORDS.contains(&&**own) {
            true => has_word(name, own),
            false => whole.contains(own.as_str()),
        })
    }

    /// Returns `true` if a JSON value is a text that contains one of these.
    pub(super) fn is_text(&self, value: &RawValue) -> bool {
        serde_json::from_str::<Text<'_>>(value.get()).is_ok_and(|Text(text)| self.holds(&text))
    }

    /// Returns `true` if a text gives a value to one of these, or holds credentials by themselves.
    pub(super) fn are_in(&self, text: &str) -> bool {
        secret_at(text, |name| self.holds(name)).is_some()
    }
}

/// Returns where the first secret of a text begins: behind a name that `is_secret` and its `=` or
/// `:`, or behind the scheme of credentials.
pub(super) fn secret_at(text: &str, is_secret: impl Fn(&str) -> bool) -> Option<usize> {
    let mut before = 0;
    let mut named = text.match_indices(['=', ':']).filter_map(|(at, sign)| {
        let name = last_words(&text[before..at]);
        before = at + sign.len();
        is_secret(name).then_some(before)
    });
    let places = [named.next(), credentials_at(text)];
    places.into_iter().flatten().min()
}

/// Returns `true` if a member names what the value of another member is.
pub(super) fn names_another(member: &str) -> bool {
    matches!(&*words::plain(member), "name" | "key" | "header" | "field")
}

/// Returns `true` if a member is the value of what another member names.
pub(super) fn is_named(member: &str) -> bool {
    matches!(&*words::plain(member), "value" | "values")
}

/// Returns what may be a name at the end of a text: of its last line, the last three words.
fn last_words(text: &str) -> &str {
    let line = text.rfind(['\n', '\r']).map_or(text, |end| &text[end..]);
    let line = line.trim_end();
    let mut spaces = line.rmatch_indices(char::is_whitespace);
    let (start, _) = spaces.nth(2).unwrap_or_default();
    &line[start..]
}

/// Finds the credentials of an `Authorization` header (RFC 9110 section 11.4): what follows the
/// scheme.
fn credentials_at(text: &str) -> Option<usize> {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let end = word.as_ptr().addr() - text.as_ptr().addr() + word.len();
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_scheme = ["basic", "bearer"]
            .iter()
            .any(|s| word.eq_ignore_ascii_case(s));
        if is_scheme && words.peek().is_some() {
            return Some(end);
        }
    }
    None
}

/// Returns `true` if a word is in the name that a text ends with: `DB_PWD`, `smtp.pass`, `dbPass`.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let before = text.trim_end_matches(is_part).len();
    let name = text.get(before..).unwrap_or_default();
    words::split(name)
        .iter()
        .any(|part| words::same(part, word))
}
