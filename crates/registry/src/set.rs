//! The merged lists of a replica set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use callward_core::{ReplicaSetId, ServerId, Tool, ToolName};

use crate::catalogue::Refusal;
use crate::listing::Listing;
use crate::registry::Changes;
use crate::{SetOptions, verify};

#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(crate) options: Arc<SetOptions>,
    /// In the order of registration: the first server's definition counts.
    pub(crate) servers: Vec<(ServerId, Listing)>,
    /// In the order of the first server's list, then tools that only later servers list.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// By writing tool, the reading tool that shows its effect.
    pub(crate) pairs: HashMap<ToolName, ToolName>,
    /// Servers that have neither listed their tools nor failed.
    pub(crate) expected: HashSet<ServerId>,
}

impl Set {
    /// Merges the servers' lists, and returns the changes.
    pub(crate) fn merge(&mut self, set: &ReplicaSetId) -> Changes {
        let mut old: HashMap<ToolName, Arc<Tool>> = self
            .tools
            .drain(..)
            .map(|tool| (tool.name().clone(), tool))
            .collect();
        let mut first: HashMap<ToolName, Arc<Tool>> = HashMap::new();
        let mut changes = Changes::default();
        for (server, listing) in &self.servers {
            for tool in &listing.tools {
                let name = tool.name();
                if let Some(first) = first.get(name) {
                    if first.digest() != tool.digest() {
                        tracing::warn!(
                            %set, %server, tool = %name,
                            "the definition differs from that of the first server of the replica set, which counts"
                        );
                    }
                    continue;
                }
                first.insert(name.clone(), tool.clone());
                self.tools.push(match old.remove(name) {
                    // the same tool: keep the instance, so that readers see no change
                    Some(old) if works_alike(&old, tool) && old.resolved == tool.resolved => old,
                    Some(old) => {
                        if !works_alike(&old, tool) {
                            changes.changed.push(name.clone());
                        }
                        tool.clone()
                    }
                    None => {
                        changes.added.push(name.clone());
                        tool.clone()
                    }
                });
            }
        }
        changes.removed = old.into_keys().collect();
        changes.removed.sort_unstable();
        self.pairs = verify::pair(set, &self.servers, &self.tools, &self.options);
        changes
    }

    /// Returns the size of all definitions, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.tools.iter().map(|tool| size_of(tool)).sum()
    }

    /// Returns configured tools that no server lists: a misspelt name has no effect.
    pub(crate) fn unlisted(&self) -> Vec<Refusal> {
        let Some((server, _)) = self.servers.first() else {
            return Vec::new();
        };
        let is_listed = |tool: &&ToolName| {
            self.servers.iter().any(|(_, listing)| {
                listing.names.contains(*tool)
                    || listing.refused.iter().any(|refused| refused.tool == **tool)
            })
        };
        let named = self.options.overrides.keys();
        let paired = &self.options.verify_with;
        let mut unlisted: Vec<&ToolName> = named
            .chain(self.options.refinements.keys())
            .chain(self.options.shown.keys())
            .chain(paired.keys().chain(paired.values()))
            .filter(|tool| !is_listed(tool))
            .collect();
        unlisted.sort_unstable();
        unlisted.dedup();
        let refusal = |tool| Refusal::new(server, tool, UNLISTED);
        unlisted.into_iter().map(refusal).collect()
    }
}

/// Returns the size of a tool in a list, in bytes.
pub(crate) fn size_of(tool: &Tool) -> usize {
    tool.definition.raw.len()
}

/// Returns the largest size of each set so that all sets together fit `limit`: the largest are cut.
pub(crate) fn share(sizes: impl Iterator<Item = usize>, limit: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    let mut left = limit;
    for (smaller, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - smaller);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

const UNLISTED: &str = "it is configured, but no server of its set lists it";

/// Returns `true` if calls of both tools are treated alike. Their hints may differ.
fn works_alike(old: &Tool, new: &Tool) -> bool {
    old.digest() == new.digest()
        && old.plan() == new.plan()
        && old.refinements == new.refinements
        && old.instances == new.instances
        && old.argument_check.is_some() == new.argument_check.is_some()
}
