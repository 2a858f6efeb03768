//! What inference looks at.

use serde_json::value::RawValue;

use crate::{ServerId, ToolDefinition};

/// The parts of one tool that inference may read.
#[must_use]
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "everything that inference reads")]
pub struct Subject<'a> {
    /// The tool's name, as its server spells it.
    pub name: &'a str,
    /// The description.
    pub description: Option<&'a str>,
    /// The server's id, so that its name can be taken off the tool's.
    pub server: Option<&'a str>,
    /// The schema of the arguments, as raw JSON.
    pub input_schema: Option<&'a RawValue>,
}

impl<'a> Subject<'a> {
    /// Starts with a name and nothing else.
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            description: None,
            server: None,
            input_schema: None,
        }
    }

    /// Takes everything from a listed tool.
    pub fn of(tool: &'a ToolDefinition, server: Option<&'a ServerId>) -> Self {
        Self {
            name: tool.name.as_str(),
            description: tool.description.as_deref(),
            server: server.map(ServerId::as_str),
            input_schema: tool.input_schema.as_deref(),
        }
    }
}
