//! Warns of scopes without an effect.

use std::collections::HashSet;
use std::sync::Arc;

use callward_cache::ToolScopes;
use callward_core::{CacheRule, ReplicaSetId, Tool};
use callward_registry::Entry;

use crate::stack::Stack;

/// Warns of each tool of these sets with scopes that no call of it can use.
pub(crate) fn warn_of_idle(stack: &Stack, sets: &HashSet<ReplicaSetId>) {
    let catalogue = stack.catalogue();
    let rules = stack.cache().scope_rules();
    let of_sets = |entry: &&Arc<Entry>| sets.contains(entry.tool().set());
    for entry in catalogue.entries().iter().filter(of_sets) {
        let tool = entry.tool();
        let said = rules.of(tool.set(), tool.name());
        for warning in said.into_iter().flat_map(|said| idle(tool, said)) {
            tracing::warn!(tool = entry.client_name(), "{warning}");
        }
    }
}

/// Returns the scopes without an effect, and why.
pub(crate) fn idle(tool: &Tool, said: &ToolScopes) -> Vec<&'static str> {
    let refined = tool.refinements.rules().iter().map(|rule| &*rule.plan);
    let rules = std::iter::once(&**tool.plan())
        .chain(refined)
        .map(|plan| plan.cache);
    let rules: Vec<CacheRule> = rules.collect();
    let is_looked_up =
        |rule: &_| matches!(rule, CacheRule::Store { .. } | CacheRule::KeepOwn { .. });
    let mut idle = Vec::new();
    if said.reads.is_some() && !rules.iter().any(is_looked_up) {
        idle.push("`reads` has no effect: no result of the tool is kept");
    }
    if said.writes.is_some() && !rules.iter().any(may_write) {
        idle.push("`writes` has no effect: no call of the tool is a write");
    }
    idle
}

pub(crate) const fn may_write(rule: &CacheRule) -> bool {
    !matches!(rule, CacheRule::Store { .. } | CacheRule::Bypass)
}
