//! References in the config: `${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` in every
//! string.
//!
//! They are resolved once, in the parsed tree, so that an error names file, line and key. Their
//! values are kept so that [`References::scrub`] can remove them from output.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Keys;
use super::error::{Fault, Source};

/// The longest file that a reference may name, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// A value from this length on is left out of longer texts too; a shorter one would be found in
/// common words.
const LEAST_PIECE: usize = 4;

/// Returns a variable of the environment.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The references of a config, with their values.
#[derive(Clone, Default)]
pub(crate) struct References(Vec<Resolved>);

#[derive(Clone)]
struct Resolved {
    /// The key of the string, as a dotted path.
    key: String,
    /// The text as it is written in the file.
    written: String,
    value: String,
}

impl References {
    /// Replaces all references in a config, and returns the faults of those it cannot resolve.
    /// Paths are relative to `folder`.
    pub(super) fn resolve(
        root: &mut Spanned<DeTable<'_>>,
        folder: &Path,
        env: Env<'_>,
        source: &Source<'_>,
    ) -> (Self, Vec<Fault>) {
        let mut walk = Walk {
            folder,
            env,
            source,
            found: Vec::new(),
            faults: Vec::new(),
        };
        walk.table(root.get_mut(), "");
        // a value that contains another one is replaced first
        walk.found
            .sort_by_key(|found| std::cmp::Reverse(found.value.len()));
        (Self(walk.found), walk.faults)
    }

    /// Replaces values by their references.
    pub(crate) fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if let Some(whole) = self.0.iter().find(|found| found.value == text) {
            return whole.written.clone().into();
        }
        let mut text = Cow::Borrowed(text);
        for found in &self.0 {
            if found.value.len() >= LEAST_PIECE {
                replace(&mut text, found);
            }
        }
        text
    }

    /// Returns the values of the references in a key, or in one of its table.
    pub(super) fn values_in(&self, key: &str) -> Vec<String> {
        let within = |found: &&Resolved| super::is_within(&found.key, key);
        let found = self.0.iter().filter(within);
        found.map(|found| found.value.clone()).collect()
    }

    /// Does the same for the values of keys.
    pub(crate) fn scrub_keys(&self, keys: Keys) -> Keys {
        let scrubbed = |(key, value)| (key, self.scrub_json(value));
        keys.into_iter().map(scrubbed).collect()
    }

    fn scrub_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.scrub(&text).into(),
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.scrub_json(item))
                .collect(),
            Value::Object(keys) => self.scrub_keys(keys).into(),
            other => other,
        }
    }

    /// Does the same for a problem: its message may quote the value of its own key, however short.
    pub(super) fn scrub_fault(&self, mut fault: Fault) -> Fault {
        let mut message = Cow::Borrowed(&*fault.message);
        for found in &self.0 {
            let is_own = super::is_within(&found.key, &fault.key);
            if (is_own && !found.value.is_empty()) || found.value.len() >= LEAST_PIECE {
                replace(&mut message, found);
            }
        }
        if let Cow::Owned(message) = message {
            fault.message = message;
        }
        fault
    }
}

/// Replaces a value in a text, as it is and as `Debug` quotes it.
fn replace(text: &mut Cow<'_, str>, found: &Resolved) {
    let quoted = format!("{:?}", found.value);
    let escaped = quoted.trim_start_matches('"').trim_end_matches('"');
    for value in [found.value.as_str(), escaped] {
        if !value.is_empty() && text.contains(value) {
            *text = text.replace(value, &found.written).into();
        }
    }
}

struct Walk<'a, 'i> {
    folder: &'a Path,
    env: Env<'a>,
    source: &'a Source<'i>,
    found: Vec<Resolved>,
    faults: Vec<Fault>,
}

impl Walk<'_, '_> {
    fn table(&mut self, table: &mut DeTable<'_>, prefix: &str) {
        for (key, value) in table.iter_mut() {
            let key = key.get_ref();
            match prefix {
                "" => self.value(value, key),
                prefix => self.value(value, &format!("{prefix}.{key}")),
            }
        }
    }

    fn value(&mut self, value: &mut Spanned<DeValue<'_>>, key: &str) {
        let span = value.span();
        match value.get_mut() {
            DeValue::Table(inner) => self.table(inner, key),
            DeValue::Array(items) => {
                for (number, item) in (1_usize..).zip(items.iter_mut()) {
                    self.value(item, &format!("{key}.{number}"));
                }
            }
            DeValue::String(text) if text.contains('$') => match self.expand(text, key) {
                Ok(expanded) => *text = expanded.into(),
                Err(message) => {
                    let fault = self.source.fault(Some(span), key.to_owned(), message);
                    self.faults.push(fault);
                }
            },
            _ => {}
        }
    }

    fn expand(&mut self, text: &str, key: &str) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        let before = self.found.len();
        while let Some((literal, after)) = rest.split_once('$') {
            expanded.push_str(literal);
            rest = if let Some(after) = after.strip_prefix('$') {
                expanded.push('$');
                after
            } else if let Some(after) = after.strip_prefix('{') {
                let (reference, after) = after.split_once('}').ok_or(NOT_CLOSED)?;
                let value = self.look_up(reference)?;
                expanded.push_str(&value);
                self.remember(key, format!("${{{reference}}}"), value);
                after
            } else {
                expanded.push('$');
                after
            };
        }
        expanded.push_str(rest);
        if self.found.len() > before {
            self.remember(key, text.to_owned(), expanded.clone());
        }
        Ok(expanded)
    }

    fn remember(&mut self, key: &str, written: String, value: String) {
        self.found.push(Resolved {
            key: key.to_owned(),
            written,
            value,
        });
    }
}

const NOT_CLOSED: &str = "`${` is not closed by `}`; write `$${` for the text itself";

impl Walk<'_, '_> {
    fn look_up(&self, reference: &str) -> Result<String, String> {
        if let Some(variable) = reference.strip_prefix("env:") {
            return self.variable(variable);
        }
        if let Some(path) = reference.strip_prefix("file:") {
            return self.file(path);
        }
        let name = reference.split(":-").next().unwrap_or_default();
        Err(match is_variable(name) {
            true => format!(
                "expected `${{env:{reference}}}` for a variable of the environment, or \
                 `$${{{reference}}}` for the text itself, found `${{{reference}}}`"
            ),
            false => format!(
                "expected `${{env:NAME}}`, `${{env:NAME:-default}}` or `${{file:PATH}}`, found \
                 `${{{reference}}}`; write `$${{` for the text itself"
            ),
        })
    }

    /// As in a shell, `:-` stands for a variable that is empty, too.
    fn variable(&self, reference: &str) -> Result<String, String> {
        let parts = reference.split_once(":-");
        let (name, default) = parts.map_or((reference, None), |(name, or)| (name, Some(or)));
        if !is_variable(name) {
            return Err(format!(
                "expected the name of a variable (letters, digits and `_`), found {name:?}"
            ));
        }
        let not_text = |_| format!("the environment variable {name} is not UTF-8 text");
        let value = (self.env)(name).map(|value| value.into_string().map_err(not_text));
        let value = value.transpose()?;
        match (value, default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!(
                "the environment variable {name} is not set; set it, or write \
                 `${{env:{name}:-default}}`"
            )),
        }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let path = self.folder.join(path);
        let shown = path.display();
        let unreadable = |error| format!("the file {shown} cannot be read: {error}");
        let mut text = String::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
            .map_err(unreadable)?;
        if read as u64 > MOST_BYTES {
            return Err(format!(
                "the file {shown} is longer than {MOST_BYTES} bytes, the most that a value may have"
            ));
        }
        let end = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(end);
        Ok(text)
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_part)
}

#[cfg(test)]
#[path = "tests/references.rs"]
mod tests;
