//! A tool to look at, and what is known of it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::spelling;
use crate::{Annotations, Inferred, RuleSet, ServerId, Subject, ToolDefinition};

/// A tool to look at.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub(super) subject: Subject<'a>,
    definition: Option<&'a RawValue>,
}

impl<'a> Candidate<'a> {
    /// Starts with what inference reads.
    #[must_use]
    pub const fn new(subject: Subject<'a>) -> Self {
        Self {
            subject,
            definition: None,
        }
    }

    /// Takes everything from a listed tool.
    #[must_use]
    pub fn of(tool: &'a ToolDefinition, server: Option<&'a ServerId>) -> Self {
        Self {
            subject: Subject::of(tool, server),
            definition: serde_json::from_slice(tool.raw()).ok(),
        }
    }

    /// Adds the whole definition as listed, a JSON object. Its `annotations` are read as they stand,
    /// also where they cannot be used.
    #[must_use]
    pub const fn with_definition(mut self, definition: &'a RawValue) -> Self {
        self.definition = Some(definition);
        self
    }
}

/// Reads an object member by member, so that one bad value hides no other.
fn read_each(raw: &RawValue) -> (Map<String, Value>, Vec<(String, String)>) {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut read = Map::new();
    let mut bad = Vec::new();
    for (name, raw) in members {
        match serde_json::from_str(raw.get()) {
            Ok(Value::Null) => {}
            Ok(value) => {
                read.insert(name, value);
            }
            Err(error) => bad.push((name, error.to_string())),
        }
    }
    (read, bad)
}

fn annotations_of(definition: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        annotations: Option<&'a RawValue>,
    }
    serde_json::from_str::<Members<'_>>(definition.get())
        .ok()?
        .annotations
}

/// A tool with everything that is known of it.
pub(super) struct Case<'a> {
    pub(super) subject: Subject<'a>,
    /// The members of the definition.
    pub(super) members: Map<String, Value>,
    /// The fields of its annotations as they stand.
    pub(super) fields: Map<String, Value>,
    /// Those whose value no parser takes, and why.
    pub(super) unreadable: Vec<(String, String)>,
    /// The hints that can be read.
    pub(super) hints: Annotations,
    /// What everything together says.
    pub(super) whole: Inferred,
    /// What is said without the arguments.
    pub(super) words: Inferred,
    /// What the name says alone.
    pub(super) name: Inferred,
}

impl<'a> Case<'a> {
    pub(super) fn read(tool: &Candidate<'a>) -> Self {
        let subject = tool.subject;
        let (mut members, _) = tool.definition.map(read_each).unwrap_or_default();
        let (fields, unreadable) = match tool.definition.and_then(annotations_of) {
            Some(raw) if raw.get().starts_with('{') => {
                members.remove("annotations");
                read_each(raw)
            }
            // anything else is kept where a wrong type is looked for
            _ => Default::default(),
        };
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
            unreadable,
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
