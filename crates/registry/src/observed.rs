//! What was seen of tools while they ran.

use std::collections::BTreeMap;

use tollgate_core::infer::Volatile;
use tollgate_core::{Fingerprint, ReplicaSetId, Tool, ToolDefinition, ToolName};

/// One thing that was seen of a tool while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observation {
    /// The replica set that offers the tool.
    pub set: ReplicaSetId,
    /// The tool.
    pub tool: ToolName,
    /// What was seen: its answers change although nothing is written.
    pub volatile: Volatile,
}

/// What was seen of the tools of one set. It was seen of one definition each: another one under the
/// same name is another tool, of which nothing is known.
#[derive(Debug, Default)]
pub(crate) struct Observed(BTreeMap<ToolName, Seen>);

#[derive(Debug)]
struct Seen {
    definition: Fingerprint,
    volatile: Volatile,
}

impl Observed {
    /// Returns what was seen of the tool so defined.
    pub(crate) fn of(&self, definition: &ToolDefinition) -> Option<&Volatile> {
        let seen = self.0.get(definition.name())?;
        (seen.definition == definition.digest()).then_some(&seen.volatile)
    }

    /// Notes what was seen of a tool, unless the same tool is known for it already.
    pub(crate) fn note(&mut self, tool: &Tool, volatile: Volatile) -> bool {
        if self.of(tool.definition()).is_some() {
            return false;
        }
        let definition = tool.digest();
        let seen = Seen {
            definition,
            volatile,
        };
        self.0.insert(tool.name().clone(), seen);
        true
    }

    /// Forgets what was seen of a tool; says whether there was anything.
    pub(crate) fn take_back(&mut self, tool: &ToolName) -> bool {
        self.0.remove(tool).is_some()
    }

    /// Forgets what was seen of tools that are defined otherwise now.
    pub(crate) fn forget_others<'a>(&mut self, tools: impl Iterator<Item = &'a Tool>) {
        if self.0.is_empty() {
            return;
        }
        for tool in tools {
            let changed = |seen: &Seen| seen.definition != tool.digest();
            if self.0.get(tool.name()).is_some_and(changed) {
                self.0.remove(tool.name());
            }
        }
    }

    /// Returns everything that was seen, in the order of names.
    pub(crate) fn all<'a>(
        &'a self,
        set: &'a ReplicaSetId,
    ) -> impl Iterator<Item = Observation> + 'a {
        self.0.iter().map(|(tool, seen)| Observation {
            set: set.clone(),
            tool: tool.clone(),
            volatile: seen.volatile.clone(),
        })
    }
}
