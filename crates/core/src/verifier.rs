//! The tool that shows the effect of another one.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::ToolName;

/// A read-only tool that shows the effect of a call of another tool whose answer was lost.
///
/// It is a tool of the same replica set. Registration pairs the two, by their names or by what the
/// operator says, and pairs them again whenever the tools of the set change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifier {
    tool: ToolName,
    client_name: Arc<str>,
}

impl Verifier {
    /// Creates it from the tool's name at its server and the name that clients see.
    pub fn new(tool: ToolName, client_name: impl Into<Arc<str>>) -> Self {
        Self {
            tool,
            client_name: client_name.into(),
        }
    }

    /// Returns the tool's name, as its server spells it.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Returns the name clients call it by.
    pub fn client_name(&self) -> &str {
        &self.client_name
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.client_name)
    }
}

/// As JSON it is the name clients call it by.
impl Serialize for Verifier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.client_name)
    }
}
