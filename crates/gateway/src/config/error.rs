//! The problems of a config file: file, line, column, key, and what was expected.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Types as the parser names them, and in TOML's words.
const TYPES: [(&str, &str); 6] = [
    ("u16", "a whole number"),
    ("u32", "a whole number"),
    ("u64", "a whole number"),
    ("usize", "a whole number"),
    ("a sequence", "an array"),
    ("a map", "a table"),
];

/// A config that cannot be used: every problem that was found, in the order of the file.
#[derive(Debug)]
pub(crate) struct ConfigError {
    file: PathBuf,
    faults: Vec<Fault>,
}

/// One problem of a config file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Counts from 1; `None` for a problem of the file as a whole.
    pub(crate) line: Option<usize>,
    /// Counts characters from 1.
    pub(crate) column: usize,
    /// The key, as a dotted path; empty where there is none.
    pub(crate) key: String,
    /// What is wrong, and what was expected.
    pub(crate) message: String,
}

impl ConfigError {
    /// Collects problems.
    pub(crate) fn new(file: &Path, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        Self {
            file: file.to_owned(),
            faults,
        }
    }

    /// Returns the problems.
    #[cfg(test)]
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl Fault {
    /// States that a file cannot be read at all.
    pub(super) fn unreadable(error: &std::io::Error) -> Self {
        Self {
            message: format!("cannot be read: {error}"),
            ..Self::default()
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.file.display())?;
            if let Some(line) = fault.line {
                write!(f, ":{line}:{}", fault.column)?;
            }
            if fault.key.is_empty() {
                write!(f, ": {}", fault.message)?;
            } else {
                write!(f, ": `{}`: {}", fault.key, fault.message)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The text of a config file with its tables: finds the key of a place, and the place of a key.
pub(crate) struct Source<'i> {
    text: &'i str,
    root: Option<Spanned<DeTable<'i>>>,
}

impl<'i> Source<'i> {
    /// Reads the tables; a text that is not TOML has none.
    pub(crate) fn new(text: &'i str) -> Self {
        Self {
            text,
            root: DeTable::parse(text).ok(),
        }
    }

    /// Returns the error of a text that is not TOML.
    pub(crate) fn syntax_fault(&self, error: &toml::de::Error) -> Fault {
        let mut fault = self.parser_fault(error);
        let at = error.span().and_then(|span| self.text.get(span));
        if fault.message == "duplicate key" {
            let key = at.unwrap_or_default();
            fault.message = format!("expected each key once, found another `{key}`");
        } else if self.text.trim_start().starts_with('{') {
            fault.message = "expected TOML, found JSON: for each member of `mcpServers` write a \
                             table [servers.NAME] with its `command`, `args` and `env`, or its `url`"
                .to_owned();
        }
        // a text that ends too early has its error at the end
        let end = self.text.trim_end().len();
        let end = self.fault(Some(end..end), String::new(), String::new());
        fault.line = fault.line.or(end.line);
        fault
    }

    /// States the problem that kept a key from being read.
    pub(crate) fn parser_fault(&self, error: &toml::de::Error) -> Fault {
        let span = error.span();
        let key = span
            .as_ref()
            .zip(self.root.as_ref())
            .and_then(|(span, root)| key_at(root.get_ref(), span.start, ""))
            .unwrap_or_default();
        let message = match error.message().trim_end() {
            // the message for a choice that is a number or a flag: no table would do either
            "wanted string or table" => "expected one of the known words, as a string".into(),
            message => TYPES
                .iter()
                .fold(message.replace('\n', "; "), |message, (own, plain)| {
                    message.replace(&format!("expected {own}"), &format!("expected {plain}"))
                }),
        };
        self.fault(span, key, message)
    }

    /// States a problem of a key. Where the key is absent, its table is pointed at.
    pub(crate) fn key_fault(&self, path: &[&str], message: impl Into<String>) -> Fault {
        self.fault(self.span(path), path.join("."), message.into())
    }

    /// Returns where a key stands, or its table.
    pub(crate) fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        let root = self.root.as_ref()?;
        span_of(root.get_ref(), path)
    }

    /// States a problem of a place.
    pub(crate) fn fault(&self, span: Option<Range<usize>>, key: String, message: String) -> Fault {
        let before = span.and_then(|span| self.text.get(..span.start));
        Fault {
            line: before.map(|before| before.matches('\n').count() + 1),
            column: before.map_or(0, |before| {
                before
                    .rsplit('\n')
                    .next()
                    .map_or(0, |line| line.chars().count())
                    + 1
            }),
            key,
            message,
        }
    }
}

/// Finds the key a place belongs to: the key itself, or its value.
fn key_at(table: &DeTable<'_>, offset: usize, prefix: &str) -> Option<String> {
    let mut around = None;
    for (key, value) in table.iter() {
        let path = if prefix.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{prefix}.{}", key.get_ref())
        };
        if let DeValue::Table(inner) = value.get_ref()
            && let Some(found) = key_at(inner, offset, &path)
        {
            return Some(found);
        }
        if value.span().contains(&offset) || key.span().contains(&offset) {
            around = Some(path);
        }
    }
    around
}

/// Finds the place of a value, or else of the innermost table on the way to it.
fn span_of(table: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table
        .iter()
        .find(|(key, _)| key.get_ref().as_ref() == *first)?;
    match value.get_ref() {
        DeValue::Table(inner) if !rest.is_empty() => {
            Some(span_of(inner, rest).unwrap_or_else(|| key.span()))
        }
        DeValue::Table(_) => Some(key.span()),
        DeValue::Array(items) => Some(span_in(items, rest).unwrap_or_else(|| key.span())),
        _ => Some(value.span()),
    }
}

/// Goes on into a list; its elements are counted from 1, as people do.
fn span_in(items: &DeArray<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (number, rest) = path.split_first()?;
    let index = number.parse::<usize>().ok()?.checked_sub(1)?;
    let item = items.get(index)?;
    match item.get_ref() {
        DeValue::Table(inner) => Some(span_of(inner, rest).unwrap_or_else(|| item.span())),
        _ => Some(item.span()),
    }
}
