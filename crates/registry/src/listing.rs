//! What one server lists, read: hints weighed, plans derived.

use std::sync::Arc;

use tollgate_core::infer;
use tollgate_core::{
    Hints, Inferred, Instances, Refinements, ReplicaSetId, ServerId, Subject, Tool, ToolDefinition,
    ToolName, judge,
};

use crate::SetOptions;
use crate::catalogue::{Refusal, ToolNames};
use crate::observed::Observed;

/// What one server lists, already read: what can be offered, and what cannot.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In the order of the list.
    listed: Vec<Listed>,
    pub(crate) names: Arc<ToolNames>,
    pub(crate) refused: Vec<Refusal>,
    /// How it was read: what is read again later must come out the same, but for what is new.
    options: Arc<SetOptions>,
    /// How the server divides its state among callers, as it says itself.
    pub(crate) instances: Instances,
}

/// One place of a list.
#[derive(Debug)]
enum Listed {
    Bound(Bound),
    /// It cannot be offered, as it is read now.
    Refused(ToolDefinition),
}

/// One tool, and what of its reading depends on the others of its server.
#[derive(Debug)]
struct Bound {
    tool: Arc<Tool>,
    inferred: Inferred,
}

impl Listing {
    /// Reads what a server lists.
    pub(crate) fn read(
        set: &ReplicaSetId,
        server: &ServerId,
        definitions: Vec<ToolDefinition>,
        instances: Instances,
        options: &Arc<SetOptions>,
        observed: &Observed,
    ) -> Self {
        let mut listing = Self {
            options: options.clone(),
            instances,
            ..Self::default()
        };
        let mut names = ToolNames::default();
        let inferred = infer(server, &definitions, options);
        for (definition, inferred) in definitions.into_iter().zip(inferred) {
            let name = definition.name().clone();
            let refuse = |reason: String| {
                tracing::warn!(%server, tool = %name, reason, "tool refused");
                Refusal {
                    server: server.clone(),
                    tool: name.clone(),
                    reason,
                }
            };
            let bound = if names.contains(&name) {
                Err("listed twice".to_owned())
            } else {
                bind(set, &definition, &inferred, options, observed)
                    .map(|tool| tool.with_instances(listing.effective_instances()))
            };
            listing.listed.push(match bound {
                Ok(tool) => {
                    let tool = Arc::new(tool);
                    names.insert(name);
                    Listed::Bound(Bound { tool, inferred })
                }
                Err(reason) => {
                    listing.refused.push(refuse(reason));
                    Listed::Refused(definition)
                }
            });
        }
        listing.names = Arc::new(names);
        listing
    }

    /// Returns the tools that can be offered, in the order of the list.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.listed.iter().filter_map(|listed| match listed {
            Listed::Bound(bound) => Some(&bound.tool),
            Listed::Refused(_) => None,
        })
    }

    /// Returns how the state behind the tools is divided: as the operator says, or else the server.
    fn effective_instances(&self) -> Instances {
        self.options.instances.unwrap_or(self.instances)
    }

    /// Returns what was listed, whether it can be offered or not.
    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        let definition = |listed: &Listed| match listed {
            Listed::Bound(bound) => bound.tool.definition().clone(),
            Listed::Refused(definition) => definition.clone(),
        };
        self.listed.iter().map(definition).collect()
    }

    /// Weighs what is said of one tool again, with what has been seen of it since.
    pub(crate) fn read_again(&mut self, name: &ToolName, observed: &Observed) {
        let instances = self.effective_instances();
        let bound = self.listed.iter_mut().find_map(|listed| match listed {
            Listed::Bound(bound) if bound.tool.name() == name => Some(bound),
            _ => None,
        });
        let Some(bound) = bound else { return };
        let (set, definition) = (bound.tool.set(), bound.tool.definition());
        match bind(set, definition, &bound.inferred, &self.options, observed) {
            Ok(tool) => bound.tool = Arc::new(tool.with_instances(instances)),
            // what is seen of a tool refuses none: only what its server declares does
            Err(reason) => tracing::error!(%set, tool = %name, reason, "cannot be read again"),
        }
    }
}

/// Draws conclusions about all tools of a server.
fn infer(server: &ServerId, tools: &[ToolDefinition], options: &SetOptions) -> Vec<Inferred> {
    let listed: Vec<infer::Listed<'_>> = tools
        .iter()
        .map(|tool| infer::Listed::new(Subject::of(tool, Some(server)), tool.annotations()))
        .collect();
    options.inference().infer_all(&listed)
}

/// Reads one definition's hints and derives its plan.
fn bind(
    set: &ReplicaSetId,
    definition: &ToolDefinition,
    inferred: &Inferred,
    options: &SetOptions,
    observed: &Observed,
) -> Result<Tool, String> {
    let mut hints = Hints::new(inferred, definition.annotations(), options.trust)
        .with_server_defaults(&options.defaults);
    if let Some(operator) = options.overrides.get(definition.name()) {
        hints = hints.with_operator(operator);
    }
    if let Some(seen) = observed.of(definition) {
        hints = hints.with_observed_volatility(seen);
    }
    let judged = judge(&hints, &options.profile);
    if let Some(reason) = judged.refusal() {
        return Err(reason);
    }
    for warning in judged.resolved.warnings() {
        tracing::warn!(%set, tool = %definition.name(), warning, "hints contradict each other");
    }
    let rules = options
        .refinements
        .get(definition.name())
        .map_or(&[][..], Vec::as_slice);
    let refinements = Refinements::bind(rules, &hints, &judged.plan, &options.profile);
    let tool = Tool::new(
        set.clone(),
        definition.clone(),
        judged.resolved,
        judged.plan,
    );
    Ok(tool.with_refinements(refinements))
}
