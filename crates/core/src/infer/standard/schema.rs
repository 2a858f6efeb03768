//! Infers from the names of arguments.
//!
//! The schema is read as text, once, for the names in it: parsing it would cost more than all the
//! rest of inference. A name is a string with a colon behind it, wherever it stands.

use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::{memchr, memchr2, memmem};

use crate::infer::lexicon::words::list;
use crate::infer::lexicon::{Lexicon, Role, Roles, Verb, VerbKind};
use crate::infer::words;

/// How close after the name of the argument the choices must follow, in bytes.
const REACH: usize = 400;

/// What the name of an argument means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Agreement,
    Choice,
    Destination,
    File,
    Program,
    Query,
    Statement,
}

/// The arguments of one tool whose names mean something: the first of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arguments<'a> {
    /// The caller agrees to what cannot be taken back.
    pub(super) agreement: Option<&'static str>,
    /// It says where the result is put.
    pub(super) destination: Option<&'static str>,
    /// It holds a file, of what is read or for the result.
    pub(super) file: Option<&'static str>,
    /// It holds a program.
    pub(super) program: Option<&'static str>,
    /// It holds a statement of a language.
    pub(super) statement: Option<&'static str>,
    /// It holds a query of any kind.
    pub(super) query: bool,
    /// What follows the first argument that chooses between the things a tool does.
    choice: Option<&'a str>,
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

    fn note(&mut self, name: &str, after: &'a str) {
        let (known, meanings) = known(name).unwrap_or_default();
        for meaning in meanings {
            match meaning {
                Meaning::Agreement => self.agreement.get_or_insert(known),
                Meaning::Destination => self.destination.get_or_insert(known),
                Meaning::File => self.file.get_or_insert(known),
                Meaning::Program => self.program.get_or_insert(known),
                Meaning::Statement => self.statement.get_or_insert(known),
                Meaning::Query => {
                    self.query = true;
                    continue;
                }
                Meaning::Choice => {
                    self.choice.get_or_insert(after);
                    continue;
                }
            };
        }
        if self.file.is_none() && is_output(name) {
            self.file = Some("output");
        }
    }

    /// Finds a choice that writes: `"action": {"enum": ["list", "close"]}`.
    pub(super) fn choice<'l>(&self, lexicon: &'l Lexicon) -> Option<&'l Verb> {
        let near = self.choice?.as_bytes();
        let near = near.get(..REACH.min(near.len()))?;
        let from = memmem::find(near, b"\"enum\"")? + 6;
        let list = near.get(from..)?;
        let end = memchr(b']', list).unwrap_or(list.len());
        list.get(..end)?
            .split(|byte| !byte.is_ascii_alphabetic())
            .filter_map(|word| lexicon.find(std::str::from_utf8(word).ok()?))
            .find(|verb| verb.kind != VerbKind::Read)
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

/// Returns where a string ends that has begun.
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

/// Returns `true` if an argument begins with `output` and does not say what the output looks like:
/// `output_audio`, not `outputFormat`.
fn is_output(name: &str) -> bool {
    name.get(.."output".len())
        .is_some_and(|start| start.eq_ignore_ascii_case("output"))
        && !words::split(name)
            .iter()
            .any(|word| Roles::of(word).has(Role::Shape))
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
        let read = |text| Arguments::read(text);
        let schema = r#"{"properties": {"File-Path" : {"description": "a \"sql\": no"}}}"#;
        let arguments = read(schema);
        assert_eq!(arguments.file, Some("filepath"));
        assert_eq!(arguments.program, None);
        assert_eq!(read(r#"{"sql":{}}"#).program, Some("sql"));
        assert_eq!(read(r#"["sql"]"#).program, None);
        assert_eq!(
            read(r#"{"save_to":1,"saveTo":2}"#).destination,
            Some("saveto")
        );
        assert_eq!(read(r#"{"confirm":{}}"#).agreement, Some("confirm"));
        assert_eq!(read(r#"{"outputAudio":{}}"#).file, Some("output"));
        assert_eq!(read(r#"{"output_format":{}}"#).file, None);
    }

    #[test]
    fn what_is_no_schema_tells_nothing() {
        for text in [
            "",
            "\"",
            "\"sql",
            "\"sql\\",
            "\"\\\"sql\":",
            "null",
            "\"é\":\"sql\"",
        ] {
            let arguments = Arguments::read(text);
            assert!(arguments.program.is_none(), "{text}");
        }
    }
}
