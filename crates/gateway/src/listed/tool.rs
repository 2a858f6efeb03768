//! One tool as it is written.

use std::fmt;

use callward::Annotations;
use callward::core::Subject;
use callward::core::lint::{self, Candidate, Code};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plain;

/// One tool as it is written. Its name may be any text. `tools` and `result` make it a list of
/// tools instead.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// The whole object.
    #[serde(skip)]
    pub(crate) text: String,
    pub(super) name: Option<String>,
    pub(crate) server: Option<String>,
    description: Option<String>,
    #[serde(alias = "input_schema")]
    input_schema: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
    pub(super) tools: Option<Box<RawValue>>,
    pub(super) result: Option<Box<RawValue>>,
}

/// Why an element is not a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name, if it has one.
    pub(crate) name: Option<String>,
    /// What is wrong.
    pub(crate) reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "tool \"{}\": {}", plain::line(name), self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl Listed {
    /// Reads one object, be it a tool or not.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|error| Fault::new(format!("is not UTF-8: {error}")))?;
        let read = serde_json::from_str(text).map_err(|error| Fault::find(text, Some(&error)))?;
        Ok(Self {
            text: text.to_owned(),
            ..read
        })
    }

    /// Takes it as one tool.
    pub(super) fn into_tool(self) -> Result<Self, Fault> {
        let objects = [&self.input_schema, &self.annotations];
        let is_object = |raw: &RawValue| raw.get().starts_with('{');
        match objects.into_iter().flatten().all(|raw| is_object(raw)) && self.name.is_some() {
            true => Ok(self),
            false => Err(Fault::find(&self.text, None)),
        }
    }

    /// Returns the name; a list may have none.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns what inference reads.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            name: self.name(),
            description: self.description.as_deref(),
            server: self.server.as_deref(),
            input_schema: self.input_schema.as_deref(),
        }
    }

    /// Returns the declared hints.
    ///
    /// # Errors
    ///
    /// [`Fault`] if one of them has a value of the wrong type.
    pub(crate) fn declared(&self) -> Result<Annotations, Fault> {
        let Some(raw) = &self.annotations else {
            return Ok(Annotations::default());
        };
        serde_json::from_str(raw.get()).map_err(|error| {
            let wrong = serde_json::from_str(&self.text).map(|definition| {
                let candidate = Candidate {
                    subject: self.subject(),
                    definition: Some(definition),
                };
                lint::check(&[candidate])
                    .into_iter()
                    .filter(|finding| finding.code == Code::WrongType)
                    .map(|finding| format!("annotations.{} {}", finding.field, finding.message))
                    .collect::<Vec<_>>()
            });
            Fault {
                name: self.name.clone(),
                reason: match wrong {
                    Ok(wrong) if !wrong.is_empty() => wrong.join("; "),
                    _ => format!("annotations: {}", said(&error)),
                },
            }
        })
    }
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            name: None,
            reason: reason.into(),
        }
    }

    /// Lists what is wrong with an object that is not a tool, member by member.
    fn find(text: &str, error: Option<&serde_json::Error>) -> Self {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            // listing members works at any depth; keeping them does not
            Err(_) if serde_json::from_str::<&RawValue>(text).is_ok() => {
                return Self::new("is not a tool, and is nested too deeply for details");
            }
            Err(error) => return Self::new(format!("is not JSON: {}", said(&error))),
        };
        let Value::Object(members) = &value else {
            return Self::new(format!("is {}, not an object with a `name`", kind(&value)));
        };
        let wrong = |(member, is_right, expected): Member| match members.get(member) {
            None | Some(Value::Null) => (member == "name").then(|| "has no `name`".to_owned()),
            Some(value) if is_right(value) => None,
            Some(value) => Some(format!("`{member}` is {}, not {expected}", kind(value))),
        };
        let mut wrong: Vec<String> = MEMBERS.into_iter().filter_map(wrong).collect();
        if let Some(error) = error.filter(|_| wrong.is_empty()) {
            wrong.push(said(error));
        }
        let name = members.get("name").and_then(Value::as_str);
        Self {
            name: name.map(str::to_owned),
            reason: wrong.join("; "),
        }
    }
}

/// A member of a tool: its name, its type, and the type in words.
type Member = (&'static str, fn(&Value) -> bool, &'static str);

const MEMBERS: [Member; 6] = [
    ("name", Value::is_string, "a string"),
    ("description", Value::is_string, "a string"),
    ("server", Value::is_string, "a string"),
    ("inputSchema", Value::is_object, "an object"),
    ("input_schema", Value::is_object, "an object"),
    ("annotations", Value::is_object, "an object"),
];

/// What a parser said, without the line: that is always the first, and ours is another.
fn said(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
