//! The merged lists of a replica set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use callward_core::{CallStats, Method, ReplicaSetId, ServerId, Tool, ToolName};

use crate::catalogue::{Entry, Refusal};
use crate::listing::Listing;
use crate::names::{MAX_UNLISTED, spare_name};
use crate::part::Part;
use crate::registry::Changes;
use crate::shown::Shown;
use crate::{SetOptions, verify};

#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(crate) options: Arc<SetOptions>,
    /// In the order of registration: the first server's definition counts.
    pub(crate) servers: Vec<(ServerId, Listing)>,
    /// In the order of the first server's list, then tools that only later servers list.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// The size of all their definitions, in bytes.
    pub(crate) size: usize,
    /// The counts of each tool's calls: they outlive its definition.
    pub(crate) stats: HashMap<ToolName, Arc<CallStats>>,
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
                    Some(old) if is_same(&old, tool) => old,
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
        self.size = self.tools.iter().map(|tool| size_of(tool)).sum();
        if self.stats.len() > self.tools.len() + MAX_UNLISTED {
            self.stats.retain(|tool, _| first.contains_key(tool));
        }
        self.pairs = verify::pair(set, &self.servers, &self.tools, &self.options);
        changes
    }

    /// Lets the lists share the set's instances of equal tools.
    pub(crate) fn share_tools(&mut self) {
        let own: HashMap<_, _> = self.tools.iter().map(|tool| (tool.name(), tool)).collect();
        for tool in self
            .servers
            .iter_mut()
            .flat_map(|(_, listing)| &mut listing.tools)
        {
            // the same bytes: what a server lists is compared with its next list
            let is_equal =
                |own: &&&Arc<Tool>| is_same(own, tool) && own.definition.raw == tool.definition.raw;
            if let Some(own) = own.get(tool.name()).filter(is_equal) {
                *tool = Arc::clone(own);
            }
        }
    }

    /// Makes the set's part of the next snapshot. Entries of the old one that did not change are
    /// reused.
    pub(crate) fn part(
        &self,
        set: &ReplicaSetId,
        names: &HashMap<ToolName, Arc<str>>,
        waits: bool,
        share: usize,
        old: Option<&Part>,
    ) -> Part {
        let mut part = Part::default();
        let mut size = 0;
        for tool in &self.tools {
            if tool.definition.method != Method::CallTool {
                let name = format!("{set}.{}", tool.name());
                part.methods
                    .extend(Entry::new(tool, None, name.into(), None).map(Arc::new));
                continue;
            }
            let shown = Shown::of(&self.options, &tool.definition);
            let shown = shown.as_deref();
            if shown.is_some_and(|shown| shown.hidden) {
                continue;
            }
            size += size_of(tool);
            let name = match names.get(tool.name()) {
                _ if size > share => Err(format!(
                    "all tools together are larger than {MAX_LISTED} bytes; the longest lists lose \
                     their last tools"
                )),
                Some(name) => Ok(name),
                None if waits => Err(WAITS.to_owned()),
                None => Err(format!(
                    "the name `{}` belongs to another tool; give its set another prefix",
                    spare_name(set, tool)
                )),
            };
            let name = match name {
                Ok(name) => name,
                Err(reason) => {
                    let server = self.servers.first().map(|(server, _)| server);
                    let refusal = |server| Refusal::new(server, tool.name(), reason);
                    part.refused.extend(server.map(refusal));
                    part.is_incomplete = true;
                    continue;
                }
            };
            let prefix = self.options.prefix.as_deref();
            let offered = || Entry::new(tool, prefix, name.clone(), shown).map(Arc::new);
            match old
                .and_then(|old| old.same(tool, name, shown))
                .map_or_else(offered, Ok)
            {
                Ok(entry) => part.push(entry),
                Err(error) => {
                    tracing::error!(%set, tool = %tool.name(), %error, "cannot be renamed");
                }
            }
        }
        for (server, listing) in &self.servers {
            part.servers.push((server.clone(), listing.names.clone()));
            part.refused.extend(listing.refused.iter().cloned());
            let held = listing.held.iter().map(|held| held.change.clone());
            part.held.extend(held);
        }
        part.refused.extend(self.unlisted());
        part
    }

    /// Returns configured tools that no server lists: a misspelt name has no effect.
    pub(crate) fn unlisted(&self) -> Vec<Refusal> {
        let Some((server, _)) = self.servers.first() else {
            return Vec::new();
        };
        let is_listed = |tool: &&ToolName| {
            self.servers.iter().any(|(_, listing)| {
                listing.names.contains(*tool)
                    || listing.held.iter().any(|held| held.change.tool == **tool)
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

/// The largest size of all definitions together, in bytes: clients get them in one list.
pub(crate) const MAX_LISTED: usize = 16 << 20;

pub(crate) const WAITS: &str =
    "waits for its name until the servers before its own have listed their tools or failed to";

const UNLISTED: &str = "it is configured, but no server of its set lists it";

/// Returns `true` if both are the same tool with the same hints and plan.
fn is_same(old: &Tool, new: &Tool) -> bool {
    works_alike(old, new) && old.resolved == new.resolved
}

/// Returns `true` if calls of both tools are treated alike. Their hints may differ.
fn works_alike(old: &Tool, new: &Tool) -> bool {
    old.digest() == new.digest()
        && old.definition.overlays == new.definition.overlays
        && old.plan() == new.plan()
        && old.refinements == new.refinements
        && old.instances == new.instances
        && old.argument_check.is_some() == new.argument_check.is_some()
}
