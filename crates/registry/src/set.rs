//! What the servers of one replica set list.

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
    /// In the order the servers came: the first one's definition counts.
    pub(crate) servers: Vec<(ServerId, Listing)>,
    /// In the order of the first server's list, then what only later ones have.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// By tool that writes, the one that shows what it did.
    pub(crate) pairs: HashMap<ToolName, ToolName>,
    /// Servers that have neither listed their tools yet nor failed to.
    pub(crate) expected: HashSet<ServerId>,
}

impl Set {
    /// Makes one list of the servers' lists, and says what is different from before.
    pub(crate) fn merge(&mut self, set: &ReplicaSetId) -> Changes {
        let mut old: HashMap<ToolName, Arc<Tool>> = self
            .tools
            .drain(..)
            .map(|tool| (tool.name().clone(), tool))
            .collect();
        let mut first: HashMap<ToolName, Arc<Tool>> = HashMap::new();
        let mut changes = Changes::default();
        for (server, listing) in &self.servers {
            for tool in listing.tools() {
                let name = tool.name();
                if let Some(first) = first.get(name) {
                    if first.digest() != tool.digest() {
                        tracing::warn!(
                            %set, %server, tool = %name,
                            "lists another definition than the first server of its replica set; the first one counts"
                        );
                    }
                    continue;
                }
                first.insert(name.clone(), tool.clone());
                self.tools.push(match old.remove(name) {
                    // the same tool: keep the instance, so that readers see no change
                    Some(old) if works_alike(&old, tool) && old.resolved() == tool.resolved() => {
                        old
                    }
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
        self.pairs = verify::pair(set, &self.tools, &self.options);
        changes
    }

    /// Returns how many bytes the definitions of its tools have.
    pub(crate) fn size(&self) -> usize {
        self.tools.iter().map(|tool| size_of(tool)).sum()
    }

    /// Finds the tools that the operator says something of, and that no server lists: a slip of the
    /// keyboard there would otherwise leave a tool without its hints. Of new ones the log tells.
    pub(crate) fn unlisted(&self, known: &[Refusal]) -> Vec<Refusal> {
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
            .chain(paired.keys().chain(paired.values()))
            .filter(|tool| !is_listed(tool))
            .collect();
        unlisted.sort_unstable();
        unlisted.dedup();
        let refusal = |tool: &ToolName| {
            let refusal = Refusal {
                server: server.clone(),
                tool: tool.clone(),
                reason: UNLISTED.to_owned(),
            };
            if !known.contains(&refusal) {
                tracing::warn!(%server, %tool, reason = UNLISTED, "tool not found");
            }
            refusal
        };
        unlisted.into_iter().map(refusal).collect()
    }
}

/// Returns how many bytes a tool takes in a list.
pub(crate) fn size_of(tool: &Tool) -> usize {
    tool.definition().raw().len()
}

/// Returns how much of each set fits, so that all have `limit` together: the largest give way first.
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

const UNLISTED: &str = "the operator says something of it, but no server of its set lists it";

/// Says whether neither the tool nor what happens to its calls has changed. Hints may have all the
/// same: what others of its server show of it, or what the operator says.
fn works_alike(old: &Tool, new: &Tool) -> bool {
    old.digest() == new.digest()
        && old.plan() == new.plan()
        && old.refinements() == new.refinements()
        && old.instances() == new.instances()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_largest_lists_give_way_first() {
        for (sizes, limit, each) in [
            (&[][..], 10, usize::MAX),
            (&[4, 6], 10, usize::MAX),
            (&[11], 10, 10),
            (&[9, 1, 9], 11, 5),
            (&[2, 3, 9], 11, 6),
        ] {
            assert_eq!(share(sizes.iter().copied(), limit), each, "{sizes:?}");
        }
    }
}
