//! The key of a breaker in its set, found without cloning either name.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use callward_core::{ServerId, ToolName};

/// Server and tool, owned.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) server: ServerId,
    pub(crate) tool: ToolName,
}

/// Server and tool, owned or not. A clone of a name is a write to memory that every thread shares,
/// which is more than the whole check of a breaker costs, so keys are looked up by reference.
pub(crate) trait Names {
    fn names(&self) -> (&str, &str);
}

impl Names for Key {
    fn names(&self) -> (&str, &str) {
        (self.server.as_str(), self.tool.as_str())
    }
}

impl Names for (&ServerId, &ToolName) {
    fn names(&self) -> (&str, &str) {
        (self.0.as_str(), self.1.as_str())
    }
}

impl<'a> Borrow<dyn Names + 'a> for Key {
    fn borrow(&self) -> &(dyn Names + 'a) {
        self
    }
}

impl Hash for dyn Names + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl PartialEq for dyn Names + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for dyn Names + '_ {}

// an owned key must hash and compare as its borrowed form does

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Key {}
