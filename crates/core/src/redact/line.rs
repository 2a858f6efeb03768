//! Removes secrets from lines of free text, such as a program's log.

use std::borrow::Cow;
use std::fmt;

use super::known::{HIDDEN, Known};
use super::shown::{Shown, url, without_random};

/// Leaves secrets out of lines that a program wrote: values that are known, what follows the name
/// of a secret, credentials, what [`url`] leaves out of URLs, and long random texts.
///
/// A secret that is neither known nor named looks like other text, so this is a safeguard, not a
/// permission to publish such lines.
///
/// ```
/// use callward_core::redact::Lines;
///
/// let lines = Lines::new(["postgres://ada:hunter2@db/shop"]);
/// assert_eq!(lines.redact("no user with hunter2"), "no user with [redacted]");
/// assert_eq!(lines.redact("retry 3, token=abc"), "retry 3, token=[redacted]");
/// ```
pub struct Lines {
    known: Known,
    /// The end of the lines so far.
    before: Vec<u8>,
    /// Short values, the longest first: one may be part of another.
    words: Vec<String>,
    shown: Shown,
}

impl Lines {
    /// Creates it with values that are left out everywhere: whole, each of their lines, also of
    /// those with `\n` between them, and the passwords in them. Values of less than three
    /// characters, `true` and `false` are no secrets.
    pub fn new<V: AsRef<str>>(secrets: impl IntoIterator<Item = V>) -> Self {
        let shown = Shown::default();
        let mut values = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            values.push(secret.to_owned());
            // a program that reads `\n` as a line end writes lines
            for line in secret.lines().chain(secret.split("\\n")) {
                values.push(line.trim().to_owned());
                values.extend(parts(line, &shown));
            }
        }
        values.retain(|value| value.len() >= LEAST && !matches!(&**value, "true" | "false"));
        values.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let words = values.split_off(values.partition_point(|value| value.len() >= LEAST_INSIDE));
        Self {
            known: Known::new(values),
            before: Vec::new(),
            words,
            shown,
        }
    }

    /// Returns the values that are long enough to be found inside words.
    pub fn into_known(self) -> Known {
        self.known
    }

    /// Rewrites one line.
    pub fn redact(&self, line: &str) -> String {
        self.named(self.known.hide(line))
    }

    /// Rewrites the next of several lines: a program may write a value over some of them. What only
    /// begins a value at the end of a line is left out too, from three characters on; or from one,
    /// if the rest of the line `is_cut` off.
    pub fn redact_next(&mut self, line: &str, is_cut: bool) -> String {
        let begun = if is_cut { 1 } else { LEAST };
        let shown = self.known.hide_next(&mut self.before, line, begun);
        let shown = self.named(shown);
        if !is_cut {
            return shown;
        }
        self.before.clear();
        // the last word may be a part of a short value
        let whole = shown.rsplit_once(' ').map_or(&*shown, |(whole, _)| whole);
        format!("{whole} [cut]")
    }

    /// Leaves out all but the long values.
    fn named(&self, line: Cow<'_, str>) -> String {
        let mut line = line.into_owned();
        for word in &self.words {
            line = without(&line, word);
        }
        // the end of a value is unknown: quotes, spaces and escapes differ between programs
        if let Some(end) = self.shown.secret_at(&line) {
            line.truncate(end);
            line.push_str(HIDDEN);
        }
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Shows none of the values.
impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

/// The shortest value that is left out.
const LEAST: usize = 3;
/// From this length on a value is found inside words too, and in other spellings.
const LEAST_INSIDE: usize = 6;

/// Returns the secret inside a value: a password of a URL or of a connection string, and what
/// follows the scheme in credentials.
fn parts(value: &str, shown: &Shown) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some((_, rest)) = value.split_once("://")
        && let Some((user, _)) = rest.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
    {
        parts.push(password.to_owned());
    }
    for pair in value.split([' ', ';', '&', '?', ',']) {
        if let Some((name, part)) = pair.split_once('=')
            && shown.is_secret(name)
        {
            parts.push(part.trim_matches(['"', '\'']).to_owned());
        }
    }
    if let Some((scheme, rest)) = value.trim().split_once(' ')
        && (scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("basic"))
    {
        parts.push(rest.trim().to_owned());
    }
    parts
}

/// Leaves a short value out where it is a word: `info` does not match in `information`.
fn without(line: &str, value: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(value) {
        let is_word =
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        out.push_str(before);
        out.push_str(if is_word { HIDDEN } else { value });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Rewrites one word: a URL, or several, or anything else.
fn word(word: &str) -> String {
    let marks = word.match_indices("://");
    let mut ends = Vec::from_iter(marks.map(|(at, _)| scheme_start(word, at)));
    let Some(first) = ends.first().copied() else {
        return match credentials_end(word) {
            Some(end) => format!("{HIDDEN}{}", word.get(end..).unwrap_or_default()),
            None => without_random(word).into_owned(),
        };
    };
    ends.push(word.len());
    let mut out = without_random(word.get(..first).unwrap_or_default()).into_owned();
    for pair in ends.windows(2) {
        if let [start, end] = *pair {
            out.push_str(&url(word.get(start..end).unwrap_or_default()));
        }
    }
    out
}

/// Returns where the `@` is in `user:password@host`, unless what is before it is a path.
fn credentials_end(word: &str) -> Option<usize> {
    let (before, host) = word.rsplit_once('@')?;
    let (user, password) = before.split_once(':')?;
    let is_full = !user.is_empty() && !password.is_empty() && !host.is_empty();
    (is_full && !before.contains('/')).then_some(before.len())
}

/// Returns where the scheme begins that ends at `end`.
fn scheme_start(word: &str, end: usize) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let before = word.get(..end).unwrap_or_default();
    before.trim_end_matches(is_part).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_left_out_whole_by_line_and_by_their_passwords() {
        let lines = Lines::new([
            "s3 cr3t",
            "postgres://ada:pa55@db/shop",
            "-----BEGIN KEY-----\nfirst line\nsecond line",
            "Server=db;Password=dots;Timeout=30",
            "Bearer opaque",
            "say \"please\"",
            "info",
            "on",
            "true",
        ]);
        let rows = r#"
failed: s3 cr3t! => failed: [redacted]!
xs3 cr3tx => x[redacted]x
postgres://ada:pa55@db/shop refused => [redacted] refused
no role for pa55 => no role for [redacted]
read first line\nsecond line => read [redacted]\n[redacted]
got 'dots' => got '[redacted]'
sent opaque => sent [redacted]
{"text":"say \"please\""} => {"text":"[redacted]"}
info: information on, true => [redacted]: information on, true"#;
        for (line, shown) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            assert_eq!(lines.redact(line), shown);
        }
    }

    #[test]
    fn what_is_named_or_in_a_url_is_left_out_of_any_line() {
        let lines = Lines::new([""; 0]);
        let rows = r#"
host=db password=hunter2 x => host=db password=[redacted]
{"apiKey": "hunter2"} => {"apiKey":[redacted]
{'key': 'hunter2'} => {'key':[redacted]
PGPASSWORD=hunter2 => PGPASSWORD=[redacted]
Driver=x;Uid=sa;PWD=hunter2 => Driver=x;Uid=sa;PWD=[redacted]
sent Authorization: Basic aHVudGVyMg== => sent Authorization:[redacted]
curl -H 'Bearer hunter2' => curl -H 'Bearer[redacted]
no redis://:hunter2@cache:6379/0, giving up => no redis://[redacted]@cache:6379/0, giving up
urls=["a://u:hunter2@h","b://u:hunter2@i"] => urls=["a://[redacted]@h","b://[redacted]@i"]
wrong API key provided: x => wrong API key provided:[redacted]
used sk-short => used [redacted]
bad key 'ghp_abcdefgh' => bad key [redacted]
sent xoxb-1234-5678-abcd to Slack => sent [redacted] to Slack
dsn ada:hunter2@tcp(db:3306)/shop => dsn [redacted]@tcp(db:3306)/shop
postgres://user:pw@host => postgres://[redacted]@host"#;
        for (line, shown) in rows.lines().filter_map(|row| row.split_once(" => ")) {
            assert_eq!(lines.redact(line), shown);
        }
        for line in [
            "npm error 404 Not Found - GET https://registry.npmjs.org/@acme%2fserver",
            "Error: Cannot find module '/srv/app/index.js'",
            "    at Module._load (node:internal/modules/cjs/loader:1104:12)",
            "2026-11-22T14:00:00.000001Z WARN listening on 127.0.0.1:8080",
            "Traceback (most recent call last):",
            "OLDPWD=/srv/app",
            "bypass=on, compass: north",
            "fetched npm:@acme/server@1.2.3 for ada@shop.example",
            "asking task-runner and risk-9 at node:20/bin@x",
        ] {
            assert_eq!(lines.redact(line), line);
        }
    }

    #[test]
    fn a_value_over_two_lines_and_each_line_of_a_key_are_left_out() {
        let mut lines = Lines::new([
            "token123",
            "hunter2hunter2",
            "-----BEGIN KEY-----\nMIIabc/def+ghi\nrest==\n-----END KEY-----",
            "-----BEGIN OTHER-----\\nMIIjkl\\nmore==",
        ]);
        let text = "got tok|en123 next|-----BEGIN KEY-----|MIIabc/def+ghi|rest==|at|\
            -----BEGIN OTHER-----|MIIjkl|more==|MIIjkl\\nmore==|t|oken123|oken124|to|kind|\
            --token=token123|a hunter2hunter2";
        let shown = "got [redacted]|[redacted] next|[redacted]|[redacted]|[redacted]|at|\
            [redacted]|[redacted]|[redacted]|[redacted]\\n[redacted]|t|[redacted]|oken124|to|kind|\
            --token=[redacted]|a [redacted]";
        for (line, shown) in text.split('|').zip(shown.split('|')) {
            assert_eq!(lines.redact_next(line, false), shown, "{line}");
        }
    }

    #[test]
    fn a_secret_that_was_cut_is_left_out_too() {
        let mut lines = Lines::new(["hunter2hunter2", "info"]);
        for (start, shown) in [
            ("password: h", "password:[redacted] [cut]"),
            ("it_is_hunter2hun", "it_is_[redacted] [cut]"),
            ("it is hunter2hun%7", "it is [cut]"),
            ("it is hunter2hunter2", "it is [cut]"),
            ("nothing here of in", "nothing here of [cut]"),
            ("nothing", "nothing [cut]"),
        ] {
            assert_eq!(lines.redact_next(start, true), shown);
        }
    }
}
