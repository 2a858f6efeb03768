//! Infers from the names of arguments.
//!
//! The schema is read as text, once, for the names in it: parsing it would cost more than all the
//! rest of inference. A name is a string with a colon behind it, wherever it stands.

use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::{memchr, memchr2, memmem};

use super::named::Named;
use crate::infer::evidence::Reason;
use crate::infer::lexicon::words::list;
use crate::infer::lexicon::{Lexicon, Role, Roles, Use, Verb, VerbKind};
use crate::infer::words;

/// How close after the name of the argument the choices must follow, in bytes.
const REACH: usize = 400;

/// What the name of an argument means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The caller agrees to what cannot be taken back.
    Agreement,
    /// It chooses between the things a tool does.
    Choice,
    /// It says where the result is put.
    Destination,
    /// It holds a file, of what is read or for the result.
    File,
    /// It holds a program.
    Program,
    /// It holds a query of any kind.
    Query,
    /// It holds a statement of a language.
    Statement,
}

/// The arguments of one tool whose names mean something: the first of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arguments<'a> {
    names: [Option<&'static str>; 7],
    /// What follows the first argument that chooses between the things a tool does.
    choice: Option<&'a str>,
    /// An argument by which the caller agrees says that the tool is destructive.
    loses: bool,
}

impl<'a> Arguments<'a> {
    /// Reads a schema.
    pub(super) fn read(schema: &'a str) -> Self {
        let mut arguments = Self::default();
        let mut rest = schema;
        while let Some((name, after)) = next_name(rest) {
            arguments.note(name, after);
            rest = after;
        }
        arguments
    }

    /// Returns the name of the first argument with this meaning, as the lists spell it.
    pub(super) fn of(&self, meaning: Meaning) -> Option<&'static str> {
        self.names.get(meaning as usize).copied().flatten()
    }

    fn note(&mut self, name: &str, after: &'a str) {
        let (known, meanings) = known(name).unwrap_or_default();
        let known = meanings.iter().map(|meaning| (*meaning, known));
        for (meaning, known) in known.chain(result(name)) {
            if let Some(name) = self.names.get_mut(meaning as usize) {
                name.get_or_insert(known);
            }
            if meaning == Meaning::Choice {
                self.choice.get_or_insert(after);
            }
            let near = after.get(..REACH).unwrap_or(after);
            self.loses |= meaning == Meaning::Agreement && near.contains("destructive");
        }
    }

    /// Returns what an argument by which the caller agrees says of the tool: that it loses
    /// something, or only that its server asks.
    pub(super) fn agreement(&self) -> Option<Reason> {
        let warns = self
            .loses
            .then_some(Reason::DescriptionWarns("destructive"));
        warns.or_else(|| self.of(Meaning::Agreement).map(Reason::Agrees))
    }

    /// Finds a choice that writes: `"action": {"enum": ["list", "close"]}`. A list with words
    /// that are no verbs, and with none that certainly is one, is of things: `["build", "page"]`.
    pub(super) fn choice<'l>(&self, lexicon: &'l Lexicon) -> Option<&'l Verb> {
        let near = self.choice?.as_bytes();
        let near = near.get(..REACH.min(near.len()))?;
        let from = memmem::find(near, b"\"enum\"")? + 6;
        let list = near.get(from..)?;
        let end = memchr(b']', list).unwrap_or(list.len());
        let (mut things, mut actions, mut writes) = (false, false, None);
        for value in list
            .get(..end)?
            .split(|byte| *byte == b'"' || *byte == b',')
        {
            let value = words::split(std::str::from_utf8(value).unwrap_or_default());
            let Some(first) = value.first() else {
                continue;
            };
            let Some(named) = Named::read(&value, lexicon) else {
                things |= first.starts_with(char::is_alphabetic);
                continue;
            };
            actions |= named.leads && named.usage == Use::Verb;
            if named.kind != VerbKind::Read {
                writes = writes.or(Some(named.verb));
            }
        }
        writes.filter(|_| actions || !things)
    }
}

/// Returns the next name, and what follows it.
fn next_name(text: &str) -> Option<(&str, &str)> {
    let mut rest = text;
    loop {
        let string = rest.get(memchr(b'"', rest.as_bytes())? + 1..)?;
        let end = end_of(string)?;
        rest = string.get(end + 1..)?;
        if rest.trim_ascii_start().starts_with(':') {
            return Some((string.get(..end)?, rest));
        }
    }
}

/// Returns the end of a string.
fn end_of(string: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let bytes = string.as_bytes().get(from..)?;
        let at = memchr2(b'"', b'\\', bytes)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(from + at);
        }
        from += at + 2;
    }
}

/// Returns what an argument means that says where a result goes: `responseFilePath`, or
/// `output_audio`, but not `outputFormat`, which says what it looks like.
fn result(name: &str) -> Option<(Meaning, &'static str)> {
    let words = words::split(name);
    let first = Roles::of(words.first()?).word_if(Role::Results)?;
    let shape = words.iter().any(|word| Roles::of(word).has(Role::Shape));
    match Roles::of(words.last()?).word_if(Role::Place) {
        Some(place) => Some((Meaning::Destination, place)),
        None => (first == "output" && !shape).then_some((Meaning::File, first)),
    }
}

/// Returns what a name means, and the name as the lists spell it: `filepath` for `file_path` and
/// `filePath`.
fn known(name: &str) -> Option<(&'static str, &'static [Meaning])> {
    static INDEX: LazyLock<HashMap<&str, Vec<Meaning>>> = LazyLock::new(|| {
        let mut index: HashMap<&str, Vec<Meaning>> = HashMap::new();
        for (meaning, name) in [
            (Meaning::Agreement, "agreements"),
            (Meaning::Choice, "choices"),
            (Meaning::Destination, "destinations"),
            (Meaning::File, "files"),
            (Meaning::Program, "programs"),
            (Meaning::Statement, "statements"),
        ] {
            for word in list(name) {
                index.entry(word).or_default().push(meaning);
            }
        }
        index.entry("query").or_default().push(Meaning::Query);
        index
    });
    let mut plain = name.replace(['_', '-'], "");
    plain.make_ascii_lowercase();
    let (known, meanings) = INDEX.get_key_value(plain.as_str())?;
    Some((known, meanings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_count_and_they_count_in_every_style() {
        let file = r#"{"File-Path" : {"d": "a \"sql\": no"}}"#;
        let saves = r#"{"save_to":1,"saveTo":2}"#;
        for (schema, meaning, known) in [
            (file, Meaning::File, Some("filepath")),
            (file, Meaning::Program, None),
            (saves, Meaning::Destination, Some("saveto")),
            (r#"{"confirm":{}}"#, Meaning::Agreement, Some("confirm")),
        ] {
            assert_eq!(Arguments::read(schema).of(meaning), known, "{schema}");
        }
        let broken = r#"["sql"]  " "sql "sql\ "\"sql": null "é":"sql""#;
        for schema in broken.split(' ') {
            let found = Arguments::read(schema).of(Meaning::Program);
            assert_eq!(found, None, "{schema}");
        }
    }
}
