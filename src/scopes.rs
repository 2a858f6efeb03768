//! Warns of scopes without an effect.

use std::collections::HashSet;
use std::sync::Arc;

use callward_cache::ToolScopes;
use callward_core::{CacheRule, CallPlan, ReplicaSetId, Tool};
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
    let plans = || std::iter::once(&**tool.plan()).chain(refined(tool));
    let mut idle = Vec::new();
    if said.reads.is_some() && !plans().any(is_looked_up) {
        idle.push("`reads` has no effect: no result of the tool is kept");
    }
    if said.writes.is_some() && !plans().any(may_write) {
        idle.push("`writes` has no effect: no call of the tool is a write");
    }
    idle
}

fn refined(tool: &Tool) -> impl Iterator<Item = &CallPlan> {
    tool.refinements.rules().iter().map(|rule| &*rule.plan)
}

fn is_looked_up(plan: &CallPlan) -> bool {
    matches!(
        plan.cache,
        CacheRule::Store { .. } | CacheRule::KeepOwn { .. }
    )
}

fn may_write(plan: &CallPlan) -> bool {
    !matches!(plan.cache, CacheRule::Store { .. } | CacheRule::Bypass)
}
