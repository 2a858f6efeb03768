//! References in the config: `${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` in every
//! string.
//!
//! They are resolved once, in the parsed tree, so that an error names file, line and key. Their
//! values are kept so that [`References::scrub`] can remove them from output.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use toml::Spanned;
use toml::de::DeValue;

use super::error::{Fault, Source, walk};

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
        root: &mut Spanned<DeValue<'_>>,
        folder: &Path,
        env: Env<'_>,
        source: &Source<'_>,
    ) -> (Self, Vec<Fault>) {
        let (mut found, mut faults) = (Vec::new(), Vec::new());
        let mut visit = |key: &str, _, value: &mut Spanned<DeValue<'_>>| {
            let span = value.span();
            let fault = match value.get_mut() {
                DeValue::String(text) if text.contains('$') => {
                    let expanded = expand(text, key, folder, env, &mut found);
                    expanded.map(|expanded| *text = expanded.into()).err()
                }
                // JSON has no such values: they would become others in conditions
                DeValue::Float(number)
                    if number.as_str().parse().is_ok_and(|n: f64| !n.is_finite()) =>
                {
                    Some("expected a finite number".into())
                }
                DeValue::Datetime(_) => Some("expected no date: write it as a string".into()),
                _ => None,
            };
            let fault = fault.map(|message| source.fault(Some(span), key.to_owned(), message));
            faults.extend(fault);
        };
        walk("", 0..0, root, &mut visit);
        // a value that contains another one is replaced first
        found.sort_by_key(|found: &Resolved| std::cmp::Reverse(found.value.len()));
        (Self(found), faults)
    }

    /// Replaces values by their references.
    pub(crate) fn scrub(&self, text: &str) -> String {
        match self.0.iter().find(|found| found.value == text) {
            Some(whole) => whole.written.clone(),
            None => self.replace(text, |_| false),
        }
    }

    /// Returns the values of the references in a key, or in one of its table.
    pub(super) fn values_in(&self, key: &str) -> Vec<String> {
        let within = |found: &&Resolved| super::is_within(&found.key, key);
        let found = self.0.iter().filter(within);
        found.map(|found| found.value.clone()).collect()
    }

    /// Does the same in a value of a key.
    pub(super) fn scrub_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.scrub(text).into(),
            Value::Array(items) => items.iter().map(|item| self.scrub_json(item)).collect(),
            Value::Object(keys) => {
                let scrubbed = |(key, value): (&String, _)| (key.clone(), self.scrub_json(value));
                keys.iter().map(scrubbed).collect()
            }
            other => other.clone(),
        }
    }

    /// Does the same in a problem: its message may quote the value of its own key, however short.
    pub(super) fn scrub_fault(&self, mut fault: Fault) -> Fault {
        let is_own = |found: &Resolved| super::is_within(&found.key, &fault.key);
        fault.message = self.replace(&fault.message, is_own);
        fault
    }

    /// Replaces values in a text, as they are and as `Debug` quotes them.
    fn replace(&self, text: &str, is_own: impl Fn(&Resolved) -> bool) -> String {
        let mut text = text.to_owned();
        let is_replaced = |found: &&Resolved| {
            !found.value.is_empty() && (found.value.len() >= LEAST_PIECE || is_own(found))
        };
        for found in self.0.iter().filter(is_replaced) {
            let quoted = format!("{:?}", found.value);
            let escaped = quoted.trim_start_matches('"').trim_end_matches('"');
            text = text.replace(&found.value, &found.written);
            if !escaped.is_empty() {
                text = text.replace(escaped, &found.written);
            }
        }
        text
    }
}

/// Replaces the references in one string, and notes their values.
fn expand(
    text: &str,
    key: &str,
    folder: &Path,
    env: Env<'_>,
    found: &mut Vec<Resolved>,
) -> Result<String, String> {
    let mut note = |written: String, value: String| {
        let key = key.to_owned();
        found.push(Resolved {
            key,
            written,
            value,
        });
    };
    let mut expanded = String::with_capacity(text.len());
    let (mut rest, mut is_plain) = (text, true);
    while let Some((literal, after)) = rest.split_once('$') {
        expanded.push_str(literal);
        rest = if let Some(after) = after.strip_prefix('{') {
            let (reference, after) = after.split_once('}').ok_or(NOT_CLOSED)?;
            let value = look_up(reference, folder, env)?;
            expanded.push_str(&value);
            note(format!("${{{reference}}}"), value);
            is_plain = false;
            after
        } else {
            expanded.push('$');
            after.strip_prefix('$').unwrap_or(after)
        };
    }
    expanded.push_str(rest);
    if !is_plain {
        note(text.to_owned(), expanded.clone());
    }
    Ok(expanded)
}

const NOT_CLOSED: &str = "`${` is not closed by `}`; write `$${` for the text itself";

fn look_up(reference: &str, folder: &Path, env: Env<'_>) -> Result<String, String> {
    if let Some(written) = reference.strip_prefix("env:") {
        return variable(written, env);
    }
    if let Some(path) = reference.strip_prefix("file:") {
        return file(&folder.join(path));
    }
    Err(format!(
        "expected `${{env:NAME}}`, `${{env:NAME:-default}}` or `${{file:PATH}}`, found \
         `${{{reference}}}`; write `$${{{reference}}}` for the text itself"
    ))
}

/// As in a shell, `:-` stands for a variable that is empty, too.
fn variable(written: &str, env: Env<'_>) -> Result<String, String> {
    let parts = written.split_once(":-");
    let (name, default) = parts.map_or((written, None), |(name, or)| (name, Some(or)));
    if !is_variable(name) {
        return Err(format!(
            "expected the name of a variable (letters, digits and `_`), found {name:?}"
        ));
    }
    let value = env(name).map(OsString::into_string).transpose();
    let value = value.map_err(|_| format!("the environment variable {name} is not UTF-8 text"))?;
    let is_used = |value: &String| default.is_none() || !value.is_empty();
    let value = value.filter(is_used).or_else(|| default.map(str::to_owned));
    value.ok_or_else(|| {
        format!(
            "the environment variable {name} is not set; set it, or write `${{env:{name}:-default}}`"
        )
    })
}

fn file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| format!("the file {shown} cannot be read: {error}"))?;
    if read as u64 > MOST_BYTES {
        return Err(format!(
            "the file {shown} is longer than {MOST_BYTES} bytes, the most that a value may have"
        ));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_part)
}

#[cfg(test)]
#[path = "tests/references.rs"]
mod tests;
