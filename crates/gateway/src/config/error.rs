//! The problems of a config file: file, line, column, key, and what was expected.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeValue;

/// Types as the parser names them, and in TOML's words.
const TYPES: [(&str, &str); 7] = [
    ("u16", "a whole number"),
    ("u32", "a whole number"),
    ("u64", "a whole number"),
    ("usize", "a whole number"),
    ("a nonzero usize", "a whole number, 1 or more"),
    ("a sequence", "an array"),
    ("a map", "a table"),
];

/// A config that cannot be used: every problem that was found, in the order of the file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .faults.iter().map(|fault| fault.shown(.file)).collect::<Vec<_>>().join("\n"))]
pub(crate) struct ConfigError {
    file: PathBuf,
    pub(super) faults: Vec<Fault>,
}

/// One problem of a config file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line and column in characters, from 1; `None` for a problem of the file as a whole.
    pub(super) at: Option<(usize, usize)>,
    /// The key, as a dotted path; empty where there is none.
    pub(super) key: String,
    /// What is wrong, and what was expected.
    pub(super) message: String,
}

impl ConfigError {
    /// Collects problems.
    pub(crate) fn new(file: &Path, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.at);
        let file = file.to_owned();
        Self { file, faults }
    }
}

impl Fault {
    pub(super) fn shown(&self, file: &Path) -> String {
        let (file, message) = (file.display(), &self.message);
        let at = self.at.map(|(line, column)| format!(":{line}:{column}"));
        let at = at.unwrap_or_default();
        match &*self.key {
            "" => format!("{file}{at}: {message}"),
            key => format!("{file}{at}: `{key}`: {message}"),
        }
    }
}

/// The text of a config file, and where its keys are.
pub(crate) struct Source<'i> {
    text: &'i str,
    /// Those of an inner table come after its own.
    places: Vec<Place>,
}

struct Place {
    /// Dotted; elements of lists are counted from 1, as people do.
    path: String,
    key: Range<usize>,
    value: Range<usize>,
    /// What a message points at: the key of a table or list, and else the value.
    shown: Range<usize>,
}

type Visit<'v, 'i> = dyn FnMut(&str, Range<usize>, &mut Spanned<DeValue<'i>>) + 'v;

/// Visits a value and then its inner ones, each with its path and where its key is.
pub(super) fn walk<'i>(
    path: &str,
    key: Range<usize>,
    value: &mut Spanned<DeValue<'i>>,
    visit: &mut Visit<'_, 'i>,
) {
    visit(path, key, value);
    match value.get_mut() {
        DeValue::Table(table) => {
            for (key, value) in table.iter_mut() {
                walk(&dotted(path, key.get_ref()), key.span(), value, visit);
            }
        }
        DeValue::Array(items) => {
            for (number, item) in (1_usize..).zip(items.iter_mut()) {
                walk(&dotted(path, &number.to_string()), item.span(), item, visit);
            }
        }
        _ => {}
    }
}

/// Appends a key to a path.
pub(super) fn dotted(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

impl<'i> Source<'i> {
    pub(crate) fn new(text: &'i str) -> Self {
        let places = Vec::new();
        Self { text, places }
    }

    /// Finds the keys.
    pub(crate) fn index(&mut self, root: &mut Spanned<DeValue<'i>>) {
        let mut add = |path: &str, key: Range<usize>, value: &mut Spanned<DeValue<'i>>| {
            let is_inner = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
            self.places.push(Place {
                path: path.to_owned(),
                shown: if is_inner { key.clone() } else { value.span() },
                key,
                value: value.span(),
            });
        };
        walk("", 0..0, root, &mut add);
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
        fault.at = fault.at.or(end.at);
        fault
    }

    /// States the problem that kept a key from being read.
    pub(crate) fn parser_fault(&self, error: &toml::de::Error) -> Fault {
        let span = error.span();
        let is_around = |place: &&Place| {
            let start = span.as_ref().map(|span| span.start);
            start.is_some_and(|at| place.key.contains(&at) || place.value.contains(&at))
        };
        let key = self.places.iter().rfind(is_around);
        let key = key.map(|place| place.path.clone()).unwrap_or_default();
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
    pub(crate) fn key_fault(&self, key: &str, message: impl Into<String>) -> Fault {
        self.fault(self.span(key), key.to_owned(), message.into())
    }

    /// Returns where a key stands, or its table.
    pub(crate) fn span(&self, key: &str) -> Option<Range<usize>> {
        let outer = || self.span(key.rsplit_once('.')?.0);
        let place = self.places.iter().find(|place| place.path == key);
        place.map(|place| place.shown.clone()).or_else(outer)
    }

    /// States a problem of a place.
    pub(crate) fn fault(&self, span: Option<Range<usize>>, key: String, message: String) -> Fault {
        let before = span.and_then(|span| self.text.get(..span.start));
        let at = before.map(|before| {
            let line = before.rsplit('\n').next().unwrap_or_default();
            (before.matches('\n').count() + 1, line.chars().count() + 1)
        });
        Fault { at, key, message }
    }
}
