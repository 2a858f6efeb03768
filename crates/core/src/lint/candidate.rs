//! A tool to check, with its definition.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::spelling;
use crate::members::Members;
use crate::{Annotations, Inferred, RuleSet, Subject};

/// A tool to look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "everything that lints read")]
pub struct Candidate<'a> {
    /// What inference reads.
    pub subject: Subject<'a>,
    /// The whole definition as listed, a JSON object, if it can be read. Its `annotations` are read
    /// as written, valid or not.
    pub definition: Option<&'a RawValue>,
}

/// An object read member by member, so that one bad value hides no other.
#[derive(Default)]
struct Each {
    /// The last of duplicate members, as in most parsers.
    read: Map<String, Value>,
    /// The members whose value no parser accepts, and why.
    unreadable: Vec<(String, String)>,
    twice: Vec<String>,
}

impl Each {
    fn of(raw: &RawValue) -> Self {
        let mut each = Self::default();
        let Ok(members) = Members::read(raw.get()) else {
            return each;
        };
        let mut seen = HashSet::new();
        for (name, raw) in members.iter() {
            if !seen.insert(name) {
                each.twice.push(name.to_owned());
            }
            match serde_json::from_str(raw.get()) {
                Ok(Value::Null) => {}
                Ok(value) => {
                    each.read.insert(name.to_owned(), value);
                }
                Err(error) => each.unreadable.push((name.to_owned(), error.to_string())),
            }
        }
        each
    }
}

fn annotations_of(definition: &RawValue) -> Option<&RawValue> {
    Members::read(definition.get()).ok()?.last("annotations")
}

/// A tool with its whole definition.
pub(super) struct Case<'a> {
    pub(super) subject: Subject<'a>,
    /// The members of the definition.
    pub(super) members: Map<String, Value>,
    /// The fields of its annotations as they stand.
    pub(super) fields: Map<String, Value>,
    /// The members whose value no parser accepts, and why.
    pub(super) unreadable: Vec<(String, String)>,
    /// The members, of the definition or its annotations, that are given twice.
    pub(super) twice: Vec<String>,
    /// The hints that can be read.
    pub(super) hints: Annotations,
    /// The conclusions from everything together.
    pub(super) whole: Inferred,
    /// The conclusions without the arguments.
    pub(super) words: Inferred,
    /// The conclusions from the name alone.
    pub(super) name: Inferred,
}

impl<'a> Case<'a> {
    pub(super) fn read(tool: &Candidate<'a>) -> Self {
        let subject = tool.subject;
        let whole = tool.definition.map(Each::of).unwrap_or_default();
        let (mut members, mut twice) = (whole.read, whole.twice);
        let annotations = match tool.definition.and_then(annotations_of) {
            Some(raw) if raw.get().starts_with('{') => {
                members.remove("annotations");
                Each::of(raw)
            }
            // other values are kept for the check of types
            _ => Each::default(),
        };
        twice.extend(annotations.twice);
        let fields = annotations.read;
        let infer = |subject: &Subject<'_>| RuleSet::Standard.infer(subject);
        let words = Subject {
            input_schema: None,
            ..subject
        };
        let name = Subject {
            description: None,
            ..words
        };
        Self {
            subject,
            hints: spelling::readable(&fields),
            members,
            fields,
            unreadable: annotations.unreadable,
            twice,
            whole: infer(&subject),
            words: infer(&words),
            name: infer(&name),
        }
    }

    /// Returns the names of the arguments at the top of the schema.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        ["inputSchema", "input_schema"]
            .into_iter()
            .find_map(|name| self.members.get(name)?.get("properties")?.as_object())
            .into_iter()
            .flat_map(|properties| properties.keys().map(String::as_str))
    }
}
