//! One tool as it is written.

use std::borrow::Cow;
use std::fmt;

use callward::Annotations;
use callward::core::Subject;
use callward::core::lint::{self, Candidate, Code};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One tool as it is written. Its name may be any text.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    /// The whole object.
    pub(crate) text: &'a str,
    pub(crate) name: Cow<'a, str>,
    pub(crate) server: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
    input_schema: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
}

/// Why an element is not a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name, if it has one.
    pub(crate) name: Option<String>,
    reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "tool {name:?}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// A string that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members that are read. `tools` and `result` make it a list of tools instead.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Members<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    server: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default, alias = "input_schema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    pub(super) fn server(&self) -> Option<Cow<'a, str>> {
        self.server.as_ref().map(|text| text.0.clone())
    }

    pub(super) const fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Takes the members as those of one tool.
    pub(super) fn into_tool(self, text: &'a str) -> Result<Listed<'a>, Fault> {
        let Some(name) = self.name else {
            return Err(Fault::find(text, None));
        };
        let open = |raw: &&RawValue| raw.get().starts_with('{');
        let objects = [self.input_schema, self.annotations];
        if !objects.iter().flatten().all(open) {
            return Err(Fault::find(text, None));
        }
        Ok(Listed {
            text,
            name: name.0,
            server: self.server.map(|text| text.0),
            description: self.description.map(|text| text.0),
            input_schema: self.input_schema,
            annotations: self.annotations,
        })
    }
}

impl<'a> Listed<'a> {
    /// Reads one object.
    pub(super) fn read(text: &'a str) -> Result<Self, Fault> {
        let members: Members<'_> =
            serde_json::from_str(text).map_err(|error| Fault::find(text, Some(&error)))?;
        members.into_tool(text)
    }

    /// Returns what inference reads.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let mut subject = Subject::new(&self.name);
        subject.description = self.description.as_deref();
        subject.server = self.server.as_deref();
        subject.input_schema = self.input_schema;
        subject
    }

    /// Returns the declared hints.
    ///
    /// # Errors
    ///
    /// [`Fault`] if one of them has a value of the wrong type.
    pub(crate) fn declared(&self) -> Result<Annotations, Fault> {
        let Some(raw) = self.annotations else {
            return Ok(Annotations::default());
        };
        serde_json::from_str(raw.get()).map_err(|error| {
            let wrong = serde_json::from_str(self.text).map(|definition| {
                let candidate = Candidate::new(self.subject()).with_definition(definition);
                lint::check(&[candidate])
                    .into_iter()
                    .filter(|finding| finding.code == Code::WrongType)
                    .map(|finding| format!("annotations.{} {}", finding.field, finding.message))
                    .collect::<Vec<_>>()
            });
            Fault {
                name: Some(self.name.to_string()),
                reason: match wrong {
                    Ok(wrong) if !wrong.is_empty() => wrong.join("; "),
                    _ => format!("annotations: {}", said(&error)),
                },
            }
        })
    }
}

impl Fault {
    /// Returns what is wrong, without the name.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            name: None,
            reason: reason.into(),
        }
    }

    pub(super) fn of_bytes(error: &std::str::Utf8Error) -> Self {
        Self::new(format!("is not UTF-8: {error}"))
    }

    /// Lists what is wrong with an object that is not a tool, member by member.
    fn find(text: &str, error: Option<&serde_json::Error>) -> Self {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            // what only lists its members goes to any depth; what keeps them does not
            Err(_) if serde_json::from_str::<&RawValue>(text).is_ok() => {
                return Self::new("is not a tool, and is nested too deeply for details");
            }
            Err(error) => return Self::new(format!("is not JSON: {}", said(&error))),
        };
        let Value::Object(members) = &value else {
            return Self::new(format!("is {}, not an object with a `name`", kind(&value)));
        };
        let name = members.get("name");
        let mut wrong = Vec::new();
        match name {
            None | Some(Value::Null) => wrong.push("has no `name`".to_owned()),
            Some(Value::String(_)) => {}
            Some(other) => wrong.push(format!("`name` is {}, not a string", kind(other))),
        }
        for text in ["description", "server"] {
            if let Some(value) = members.get(text)
                && !value.is_string()
                && !value.is_null()
            {
                wrong.push(format!("`{text}` is {}, not a string", kind(value)));
            }
        }
        for object in ["inputSchema", "input_schema", "annotations"] {
            if let Some(value) = members.get(object)
                && !value.is_object()
                && !value.is_null()
            {
                wrong.push(format!("`{object}` is {}, not an object", kind(value)));
            }
        }
        if let Some(error) = error.filter(|_| wrong.is_empty()) {
            wrong.push(said(error));
        }
        Self {
            name: name.and_then(Value::as_str).map(str::to_owned),
            reason: wrong.join("; "),
        }
    }
}

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
