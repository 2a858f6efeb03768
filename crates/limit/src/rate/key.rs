//! The key of a tool's limit, found without cloning a name.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use callward_core::{ReplicaSetId, ToolName};

/// A tool and one of the rates its plans state. The rate belongs to the key: rules over arguments
/// may make plans of several rates for one tool, and a rate that is changed counts anew.
#[derive(Debug, Clone)]
pub(crate) struct ToolRate {
    pub(crate) set: ReplicaSetId,
    pub(crate) tool: ToolName,
    pub(crate) rate: u64,
}

/// Set, tool and the bits of the rate, owned or not. A clone of a name is a write to memory that
/// every thread shares, so keys are looked up by reference.
pub(crate) trait Parts {
    fn parts(&self) -> (&str, &str, u64);
}

impl Parts for ToolRate {
    fn parts(&self) -> (&str, &str, u64) {
        (self.set.as_str(), self.tool.as_str(), self.rate)
    }
}

impl Parts for (&ReplicaSetId, &ToolName, u64) {
    fn parts(&self) -> (&str, &str, u64) {
        (self.0.as_str(), self.1.as_str(), self.2)
    }
}

impl<'a> Borrow<dyn Parts + 'a> for ToolRate {
    fn borrow(&self) -> &(dyn Parts + 'a) {
        self
    }
}

impl Hash for dyn Parts + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for dyn Parts + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Parts + '_ {}

// an owned key must hash and compare as its borrowed form does

impl Hash for ToolRate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for ToolRate {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for ToolRate {}
