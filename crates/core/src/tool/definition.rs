//! A tool as its server lists it.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{ToolOverlay, shape};
use crate::members::{Members, Text};
use crate::one_line::one_line;
use crate::{Annotations, FingerprintKey, Method, ToolName, readable};

/// A tool as its server lists it: the raw JSON object, and the members policy reads.
#[must_use]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The listed object, byte for byte.
    pub raw: Bytes,
    /// The method that calls it. Default: `tools/call`.
    pub method: Method,
    /// The tool's name, as its server spells it.
    pub name: ToolName,
    /// The description.
    pub description: Option<String>,
    /// The schema of the arguments, as raw JSON.
    pub input_schema: Option<Box<RawValue>>,
    /// The hints the server declares for the tool.
    pub annotations: Annotations,
    /// The tool can be called as a task only (`execution.taskSupport` is `required`).
    pub requires_task: bool,
    /// Why the tool cannot be offered, if that was found while its list was read.
    pub fault: Option<Box<str>>,
    /// What plugins of discovery change of the tool, in their order.
    pub overlays: Vec<ToolOverlay>,
}

/// A listed tool that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: {reason}",
    tool.as_ref().map_or_else(|| "a listed tool".into(), |t| format!("tool {:?}", one_line(t, 100)))
)]
#[non_exhaustive]
pub struct InvalidDefinition {
    /// The tool's name, if the listing gave one that can be read.
    pub tool: Option<String>,
    reason: String,
}

impl InvalidDefinition {
    fn of(raw: &[u8], reason: String) -> Self {
        let members = serde_json::from_slice::<Members<'_>>(raw).ok();
        let name = members.and_then(|members| members.last("name"));
        let name = name.and_then(|name| serde_json::from_str(name.get()).ok());
        Self {
            tool: name.map(|Text(name)| name.into_owned()),
            reason,
        }
    }
}

impl ToolDefinition {
    /// Reads one element of a `tools/list` answer. The bytes are kept as they are, but an escape of
    /// a lone surrogate becomes that of the replacement character: many parsers refuse it.
    ///
    /// # Errors
    ///
    /// [`InvalidDefinition`] names the tool, if it is known, and the member that is wrong.
    pub fn from_json(raw: impl Into<Bytes>) -> Result<Self, InvalidDefinition> {
        let raw = readable::without_lone_surrogates(raw.into());
        Self::read(&raw).map_err(|reason| InvalidDefinition::of(&raw, reason))
    }

    /// Reads one element of a `tools/list` answer for clients, which refuse the whole list if one
    /// tool breaks the protocol. If it cannot be used, the definition has a [fault](Self::fault).
    /// Where it has no usable name, `#` and its position stand in for one.
    pub fn from_list(raw: impl Into<Bytes>, position: usize) -> Self {
        let raw = readable::without_lone_surrogates(raw.into());
        let read = match readable::check_definition(&raw) {
            Err(why) => Err(format!("its definition {why}")),
            Ok(()) => Self::read(&raw),
        };
        match read {
            Ok(read) if read.input_schema.is_none() => read.with_fault("it has no `inputSchema`"),
            Ok(read) => read,
            Err(reason) => {
                let tool = InvalidDefinition::of(&raw, String::new()).tool;
                let name = tool.and_then(|name| ToolName::new(name).ok());
                let name = name.unwrap_or_else(|| ToolName::numbered(position));
                let empty = Self::empty(name);
                Self { raw, ..empty }.with_fault(&reason)
            }
        }
    }

    /// Makes the definition of a tool that takes any object.
    pub fn named(name: ToolName, annotations: Annotations) -> Self {
        let raw = json!({
            "name": name,
            "inputSchema": {"type": "object"},
            "annotations": annotations,
        });
        Self {
            raw: raw.to_string().into(),
            annotations,
            ..Self::empty(name)
        }
    }

    /// Makes the definition of a method other than `tools/call`: a tool under the method's name
    /// that reads only.
    pub fn method(method: Method) -> Self {
        let reads = Annotations::default().with_read_only(true);
        Self {
            method,
            ..Self::named(ToolName::of_method(method), reads)
        }
    }

    fn empty(name: ToolName) -> Self {
        Self {
            raw: Bytes::new(),
            method: Method::CallTool,
            name,
            description: None,
            input_schema: None,
            annotations: Annotations::default(),
            requires_task: false,
            fault: None,
            overlays: Vec::new(),
        }
    }

    fn read(raw: &Bytes) -> Result<Self, String> {
        let tool = serde_json::from_slice(raw).map_err(|error| error.to_string())?;
        let members = shape::members(tool)?;
        let name = members.last("name").ok_or("missing field `name`")?;
        let mut read = Self::empty(parsed("name", name)?);
        read.raw = raw.clone();
        for (member, value) in members.iter() {
            match member {
                "name" => {}
                "title" => drop(parsed::<Option<String>>(member, value)?),
                "description" => read.description = parsed(member, value)?,
                "inputSchema" => read.input_schema = Some(value.to_owned()),
                "annotations" => {
                    let hints: Option<_> = parsed(member, value)?;
                    read.annotations = hints.unwrap_or_default();
                }
                "execution" => read.requires_task = shape::requires_task(value),
                _ => continue,
            }
            if members.iter().filter(|(other, _)| *other == member).count() > 1 {
                return Err(format!("duplicate field `{member}`"));
            }
        }
        shape::check(&members)?;
        Ok(read)
    }

    /// Notes that the tool cannot be used, and why. At most 200 characters are kept, in one line.
    pub fn with_fault(mut self, reason: &str) -> Self {
        self.fault = Some(one_line(reason, 200).into());
        self
    }

    /// Computes the digest of the definition: another definition under the same name has another.
    pub fn digest(&self) -> u128 {
        // One that has no structural digest (a duplicate member, say) is identified by its bytes;
        // both are keyed alike in every process, so that replicas agree.
        let key = FingerprintKey::fixed();
        key.json(&self.raw).unwrap_or_else(|| key.bytes(&self.raw))
    }
}

/// Reads a member, so that an error names it. Its place in the text says little.
fn parsed<'a, T: Deserialize<'a>>(member: &str, value: &'a RawValue) -> Result<T, String> {
    serde_json::from_str(value.get()).map_err(|error| {
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        format!("{member}: {text}")
    })
}
