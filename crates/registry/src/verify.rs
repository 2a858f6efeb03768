//! Pairs writing tools with reading tools of their set.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::infer::Readers;
use callward_core::{CallPlan, Effect, Method, ReplicaSetId, RetryRule, ServerId, Tool, ToolName};

use crate::SetOptions;
use crate::listing::Listing;

/// Pairs each tool that may write with a tool that shows its effect: the operator's choice, else by
/// name, in which the words of the set and its servers say nothing. The second must be listed, and
/// read-only by its plan.
pub(crate) fn pair(
    set: &ReplicaSetId,
    servers: &[(ServerId, Listing)],
    tools: &[Arc<Tool>],
    options: &SetOptions,
) -> HashMap<ToolName, ToolName> {
    let readers: HashMap<&str, &ToolName> = tools
        .iter()
        .filter(|tool| only_reads(tool))
        .map(|tool| (tool.name().as_str(), tool.name()))
        .collect();
    let listed = tools
        .iter()
        .map(|tool| tool.name().as_str())
        .filter(|name| readers.contains_key(name));
    let servers = servers.iter().map(|(server, _)| server.as_str());
    let own = Vec::from_iter(servers.chain([set.as_str()])).join(" ");
    let by_name = Readers::new(&own, listed, options.words());
    let configured = |write: &ToolName| {
        let read = options.verify_with.get(write)?;
        let found = readers.get(read.as_str()).copied();
        if found.is_none() {
            tracing::warn!(
                %set, tool = %write, verify_with = %read,
                "the tool to verify with is not listed or not read-only; names decide"
            );
        }
        found
    };
    let reader = |write: &ToolName| {
        configured(write).or_else(|| readers.get(by_name.of(write.as_str())?).copied())
    };
    tools
        .iter()
        .filter(|tool| plans(tool).any(CallPlan::is_write))
        .filter_map(|tool| Some((tool.name().clone(), reader(tool.name())?.clone())))
        .collect()
}

/// Gives each tool its counterpart, under the name that clients see. An unchanged tool stays the
/// same instance; a counterpart without a name is omitted.
pub(crate) fn bind(
    tools: &mut [Arc<Tool>],
    pairs: &HashMap<ToolName, ToolName>,
    client_names: &HashMap<ToolName, Arc<str>>,
) {
    for tool in tools {
        let read = pairs.get(tool.name());
        let verifier = read.and_then(|read| client_names.get(read)).cloned();
        if tool.verifier != verifier {
            Arc::make_mut(tool).verifier = verifier;
        }
    }
}

/// Returns `true` if no call of the tool writes, and each is safe to retry.
fn only_reads(tool: &Tool) -> bool {
    let is_tool = tool.definition.method == Method::CallTool;
    is_tool
        && plans(tool).all(|plan| plan.effect == Effect::ReadOnly && plan.retry == RetryRule::Safe)
}

fn plans(tool: &Tool) -> impl Iterator<Item = &CallPlan> {
    let refined = tool.refinements.rules().iter().map(|rule| &*rule.plan);
    std::iter::once(&**tool.plan()).chain(refined)
}
