//! Removes secrets from arguments, results, command lines, URLs and log lines.

mod credentials;
mod known;
mod line;
mod names;
mod shown;
mod text;

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::members::{Members, Text};
use names::Names;

pub use credentials::{WithoutCredentials, credentials};
pub use known::Known;
pub use line::Lines;
pub use shown::{command, secrets_of_process, url};

/// Rewrites a JSON text so that it can be shown: values under certain names are left out, and what
/// is too long is cut. The result is always valid JSON, and never longer than the limit.
///
/// A member is left out if its name contains a listed one, whatever the case and whatever stands
/// between letters: `token` is found in `accessToken`, and `api_key` in `X-Api-Key`. Only `pass`
/// and `pwd` have to be words of their own, as in `DB_PWD` and `dbPass`. `"[redacted]"` stands in
/// its place. So it is with:
///
/// - the `value` of an object whose `name`, `key`, `header` or `field` is such a name;
/// - a text that holds such a name with `=` or `:` behind it (`?token=abc`, `Cookie: id=1`), or
///   `Bearer` or `Basic` with something behind it. All of it is left out;
/// - a text that is JSON itself, as most results of tools are: it is treated in the same way.
///
/// A secret under any other name cannot be distinguished from other text, so this is a safeguard
/// and not a permission to log secrets. The names follow the OWASP Logging Cheat Sheet's list of
/// [data to
/// exclude](https://cheatsheetseries.owasp.org/cheatsheets/Logging_Cheat_Sheet.html#data-to-exclude).
///
/// Cloning copies a pointer.
///
/// ```
/// use callward_core::redact::Redactor;
///
/// let redactor = Redactor::default();
/// let shown = redactor.redact(br#"{"user": "ada", "login": {"passWord": "hunter2"}}"#);
/// assert_eq!(shown, r#"{"user":"ada","login":{"passWord":"[redacted]"}}"#);
///
/// let short = Redactor::new(["pin"], 64);
/// assert_eq!(short.redact(br#"{"pin": 1234}"#), r#"{"pin":"[redacted]"}"#);
/// ```
#[derive(Debug, Clone)]
pub struct Redactor {
    names: Arc<Names>,
    max_bytes: usize,
}

impl Redactor {
    /// The names whose values are left out by default.
    pub const DEFAULT_NAMES: &str = "access_key api_key authentication authorization bearer \
         card_number connection_string cookie credential cvv jwt pass passphrase passwd password \
         private_key pwd secret session_id token";

    /// How long a text may be by default, in bytes: 4 KiB.
    pub const DEFAULT_MAX_BYTES: usize = 4096;

    /// The minimum limit, in bytes: less has space for marks only. A smaller one counts as this.
    pub(crate) const LEAST_MAX_BYTES: usize = 64;

    /// Takes the names whose values are left out, in place of the default ones, and how long a text
    /// may be in bytes. A name without a letter or digit names nothing.
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>, max_bytes: usize) -> Self {
        Self {
            names: Arc::new(Names::new(names)),
            max_bytes: max_bytes.max(Self::LEAST_MAX_BYTES),
        }
    }

    /// Returns `true` if values under this name are left out.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        self.names.holds(name)
    }

    /// Rewrites a JSON text. A text that is not JSON becomes `"[not JSON]"`, because its contents
    /// are unknown.
    pub fn redact(&self, raw: &[u8]) -> String {
        self.within(raw, self.max_bytes, 0)
            .unwrap_or_else(|| NOT_JSON.to_owned())
    }

    /// Rewrites a text that has to be JSON to at most `space` bytes; nothing if it is not.
    fn within(&self, raw: &[u8], space: usize, depth: usize) -> Option<String> {
        let value = serde_json::from_slice::<&RawValue>(raw).ok()?;
        let mut out = String::with_capacity(raw.len().min(space));
        self.value(&mut out, value.get(), space, depth);
        Some(out)
    }

    /// Appends a value in at most `space` bytes, of which there are enough for [`CUT`].
    fn value(&self, out: &mut String, raw: &str, space: usize, depth: usize) {
        let is_too_deep = depth >= MOST_LEVELS;
        match raw.as_bytes().first() {
            Some(b'{' | b'[') if is_too_deep || space < LEAST_CONTAINER => out.push_str(CUT),
            Some(b'{') => self.object(out, raw, space, depth + 1),
            Some(b'[') => self.array(out, raw, space, depth + 1),
            Some(b'"') => self.text(out, raw, space, depth + 1),
            _ if raw.len() <= space => out.push_str(raw),
            _ => out.push_str(CUT),
        }
    }

    fn object(&self, out: &mut String, raw: &str, space: usize, depth: usize) {
        let Ok(members) = Members::read(raw) else {
            return out.push_str(CUT);
        };
        let end = out.len() + space;
        let hides_value = members
            .iter()
            .any(|(name, value)| names::names_another(name) && self.names.is_text(value));
        out.push('{');
        for (place, (name, value)) in members.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let key = text::quoted(name);
            // what has to fit after this member, cut or not
            let kept = CUT_MEMBER.len() + ",}".len();
            let Some(space) = end
                .checked_sub(out.len() + comma.len() + key.len() + ":".len() + kept)
                .filter(|space| *space >= CUT.len())
            else {
                out.push_str(comma);
                out.push_str(CUT_MEMBER);
                break;
            };
            out.push_str(comma);
            out.push_str(&key);
            out.push(':');
            if self.names.holds(name) || (hides_value && names::is_named(name)) {
                hide(out, space);
            } else {
                self.value(out, value.get(), space, depth);
            }
        }
        out.push('}');
    }

    fn array(&self, out: &mut String, raw: &str, space: usize, depth: usize) {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else {
            return out.push_str(CUT);
        };
        let end = out.len() + space;
        out.push('[');
        for (place, item) in items.into_iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let kept = CUT.len() + ",]".len();
            let space = end
                .checked_sub(out.len() + comma.len() + kept)
                .filter(|space| *space >= CUT.len());
            out.push_str(comma);
            let Some(space) = space else {
                out.push_str(CUT);
                break;
            };
            self.value(out, item.get(), space, depth);
        }
        out.push(']');
    }

    fn text(&self, out: &mut String, raw: &str, space: usize, depth: usize) {
        let Ok(Text(text)) = serde_json::from_str::<Text<'_>>(raw) else {
            return out.push_str(CUT);
        };
        let begins_json = matches!(
            text.trim_start().as_bytes().first(),
            Some(b'{' | b'[' | b'"')
        );
        if begins_json && depth < MOST_LEVELS && space >= LEAST_WITHIN {
            // a quotation mark or a backslash takes two bytes once it is written into a text
            let inner = self.within(text.as_bytes(), (space - 2) / 2, depth);
            if let Some(inner) = inner {
                return text::push(out, &inner, space);
            }
        }
        if self.names.are_in(&text) {
            hide(out, space);
        } else {
            text::push(out, &text, space);
        }
    }
}

/// The default names, and 4 KiB.
impl Default for Redactor {
    fn default() -> Self {
        Self::new(Self::DEFAULT_NAMES.split(' '), Self::DEFAULT_MAX_BYTES)
    }
}

fn hide(out: &mut String, space: usize) {
    out.push_str(if space < HIDDEN.len() { CUT } else { HIDDEN });
}

/// What replaces a secret.
const HIDDEN: &str = "\"[redacted]\"";
/// What replaces something too long or too deep, and of what follows in an array.
const CUT: &str = "\"[cut]\"";
/// What replaces the rest of an object.
const CUT_MEMBER: &str = "\"[cut]\":true";
/// What replaces a text that is not JSON.
const NOT_JSON: &str = "\"[not JSON]\"";
/// How deep objects, arrays and texts may be nested. A nested text is read once per level.
const MOST_LEVELS: usize = 32;
/// An object or an array with a mark in it: its brackets, and [`CUT_MEMBER`].
const LEAST_CONTAINER: usize = CUT_MEMBER.len() + 2;
/// A text with such an object in it.
const LEAST_WITHIN: usize = 2 * LEAST_CONTAINER + 2;

#[cfg(test)]
mod tests;
