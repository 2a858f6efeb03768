//! The list of one server, with weighed hints and derived plans.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use callward_core::infer;
use callward_core::{
    Annotations, CallPlan, CallStats, Hints, Inferred, Instances, Method, Observation, Refinements,
    ReplicaSetId, Resolved, ServerId, Subject, Tool, ToolDefinition, ToolName, Trust, judge,
    readable,
};

use crate::SetOptions;
use crate::catalogue::{Refusal, ToolNames};
use crate::pins::{Held, Review};
#[cfg(feature = "schema")]
use crate::schema::{self, SchemaCheck};

/// Of each tool the digest of the definition that was reviewed.
pub(crate) type Digests = HashMap<ToolName, u128>;

/// What tools of a set were seen to do, each with the digest of the definition that did.
pub(crate) type Observed = HashMap<ToolName, (u128, Vec<Observation>)>;

/// The list of one server: tools that can be offered, and those that cannot.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Those that can be offered with the current options, in the order they are listed.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// All others, each with its place in the list.
    rejected: Vec<(usize, ToolDefinition)>,
    pub(crate) names: Arc<ToolNames>,
    pub(crate) refused: Vec<Refusal>,
    /// Those that wait for approval.
    pub(crate) held: Vec<Held>,
    /// The digests of what was reviewed.
    pub(crate) digests: Digests,
    /// How the server divides its state among callers.
    pub(crate) instances: Instances,
}

impl Listing {
    /// Returns `true` if this list has the same definitions, byte for byte, and overlays.
    pub(crate) fn is_same(&self, definitions: &[ToolDefinition], instances: Instances) -> bool {
        let same = |(old, new): (&ToolDefinition, &ToolDefinition)| {
            (&old.raw, old.method, &old.fault, &old.overlays)
                == (&new.raw, new.method, &new.fault, &new.overlays)
        };
        self.instances == instances
            && self.tools.len() + self.rejected.len() == definitions.len()
            && self.definitions().zip(definitions).all(same)
    }

    /// Reads and reviews the list of a server.
    pub(crate) fn read(
        (set, server): (&ReplicaSetId, &ServerId),
        mut definitions: Vec<ToolDefinition>,
        instances: Instances,
        (options, observed): (&SetOptions, &Observed),
        stats: &mut HashMap<ToolName, Arc<CallStats>>,
        review: &mut Review<'_>,
    ) -> Self {
        let mut listing = Self {
            instances,
            ..Self::default()
        };
        let mut tools = definitions.iter().enumerate().filter(|(_, it)| is_tool(it));
        if let Some((at, first)) = tools.nth(MOST) {
            let why = format!("the server lists more than {MOST} tools: this one and all after it");
            let refusal = Refusal::new(server, &first.name, why);
            listing.refused.push(refusal);
            definitions.truncate(at);
        }
        let (mut names, mut held) = (ToolNames::default(), HashSet::new());
        let inferred = infer(server, &definitions, options);
        let mut latest = Latest::default();
        for (at, (definition, inferred)) in definitions.into_iter().zip(inferred).enumerate() {
            let name = &definition.name;
            let bound = if is_tool(&definition) && Method::by_name(name.as_str()).is_some() {
                Err("its name is that of a method".to_owned())
            } else if names.contains(name) || held.contains(name) {
                Err("listed twice".to_owned())
            } else {
                let accepted = review.accepted(&definition);
                let options = (options, observed, accepted);
                bind(set, &definition, &inferred, options, &mut latest)
            };
            if bound.is_ok()
                && is_tool(&definition)
                && let Some(one) = review.held(&definition, options)
            {
                held.insert(name.clone());
                listing.held.push(one);
                listing.rejected.push((at, definition));
                continue;
            }
            match bound {
                Ok(mut tool) => {
                    tool.instances = options.instances.unwrap_or(instances);
                    tool.stats = Some(stats.entry(name.clone()).or_default().clone());
                    names.insert(name.clone());
                    listing.tools.push(Arc::new(tool));
                }
                Err(reason) => {
                    listing.refused.push(Refusal::new(server, name, reason));
                    listing.rejected.push((at, definition));
                }
            }
        }
        listing.names = Arc::new(names);
        listing.digests = std::mem::take(&mut review.digests);
        listing
    }

    /// Returns all definitions that are listed, in order.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        let mut tools = self.tools.iter();
        let mut rejected = self.rejected.iter().peekable();
        (0..self.tools.len() + self.rejected.len()).filter_map(move |at| {
            let rejected = rejected.next_if(|(place, _)| *place == at);
            let rejected = rejected.map(|(_, definition)| definition);
            rejected.or_else(|| Some(&tools.next()?.definition))
        })
    }
}

/// The latest hints and plans of a list: many tools have equal ones, and share them.
#[derive(Default)]
struct Latest {
    resolved: VecDeque<Arc<Resolved>>,
    plans: VecDeque<Arc<CallPlan>>,
}

/// How many are compared with the next one.
const MOST_COMPARED: usize = 32;

/// Returns one that is equal, or else this one, which is among the latest from now on.
fn share<T: PartialEq>(latest: &mut VecDeque<Arc<T>>, one: T) -> Arc<T> {
    if let Some(known) = latest.iter().find(|known| ***known == one) {
        return known.clone();
    }
    latest.truncate(MOST_COMPARED - 1);
    let one = Arc::new(one);
    latest.push_front(one.clone());
    one
}

fn is_tool(definition: &ToolDefinition) -> bool {
    definition.method == Method::CallTool
}

/// Infers the hints of all tools of a server together. Those of methods are known.
fn infer(server: &ServerId, tools: &[ToolDefinition], options: &SetOptions) -> Vec<Inferred> {
    let listed: Vec<infer::Listed<'_>> = tools
        .iter()
        .filter(|tool| is_tool(tool))
        .map(|tool| infer::Listed {
            subject: Subject::of(tool, Some(server)),
            declared: &tool.annotations,
        })
        .collect();
    let mut inferred = options.inference().infer_all(&listed).into_iter();
    let mut of = |tool| is_tool(tool).then(|| inferred.next()).flatten();
    let of_each = tools.iter().map(|tool| of(tool).unwrap_or_default());
    of_each.collect()
}

/// Weighs the hints of one definition, and derives its plan.
fn bind(
    set: &ReplicaSetId,
    definition: &ToolDefinition,
    inferred: &Inferred,
    (options, observed, accepted): (&SetOptions, &Observed, Option<&Annotations>),
    latest: &mut Latest,
) -> Result<Tool, String> {
    if let Some(fault) = &definition.fault {
        return Err(fault.to_string());
    }
    let mut overlays = definition.overlays.iter();
    if let Some(why) = overlays.find_map(|it| it.refused.as_ref()) {
        return Err(why.clone());
    }
    if definition.raw.len() > MAX_DEFINITION {
        return Err(format!("its definition exceeds {MAX_DEFINITION} bytes"));
    }
    // clients may be unable to read it
    readable::check_definition(&definition.raw).map_err(|why| format!("its definition {why}"))?;
    let trust = match definition.method {
        Method::CallTool => options.trust,
        // the protocol says what a method does, not the server
        _ => Trust::Trusted,
    };
    let of_it = observed.get(&definition.name);
    let of_it = of_it.filter(|_| is_tool(definition));
    let of_it = of_it.filter(|(digest, _)| *digest == definition.digest());
    let said = options.overrides.get(&definition.name);
    let both = accepted.zip(said);
    let both = both.map(|(accepted, said)| accepted.merge(said));
    let hints = Hints {
        server_defaults: Some(&options.defaults),
        observed: of_it.map_or(&[], |(_, seen)| seen),
        overlays: &definition.overlays,
        operator: both.as_ref().or(said).or(accepted),
        ..Hints::new(inferred, &definition.annotations, trust)
    };
    let is_volatile = inferred.volatile.is_some();
    let mut profile = options.profile_of(&definition.name, is_volatile);
    profile.caches &= definition.method.is_cacheable();
    let mut judged = judge(&hints, &profile);
    #[cfg(feature = "schema")]
    let schema = definition.input_schema.as_deref();
    #[cfg(feature = "schema")]
    let faults = schema.map(schema::faults).unwrap_or_default();
    #[cfg(not(feature = "schema"))]
    let faults = Vec::new();
    let reasons = Vec::from_iter(faults.into_iter().chain(judged.refusal()));
    if !reasons.is_empty() {
        return Err(reasons.join("; "));
    }
    for warning in &judged.resolved.warnings {
        tracing::warn!(%set, tool = %definition.name, warning, "hints contradict each other");
    }
    let rules = options
        .refinements
        .get(&definition.name)
        .map_or(&[][..], Vec::as_slice);
    let refinements = Refinements::bind(rules, &hints, &judged.plan, &profile);
    // kept as long as the tool
    judged.resolved.provenance.shrink_to_fit();
    let mut tool = Tool::new(
        set.clone(),
        definition.clone(),
        share(&mut latest.resolved, judged.resolved),
        share(&mut latest.plans, judged.plan),
    );
    tool.refinements = refinements;
    #[cfg(feature = "schema")]
    if let Some(schema) = schema.filter(|_| options.checks_arguments) {
        match SchemaCheck::compile(schema) {
            Ok(check) => tool.argument_check = Some(Arc::new(check)),
            Err(why) => return Err(format!("its inputSchema cannot check arguments: {why}")),
        }
    }
    Ok(tool)
}

/// How many tools of one server are offered: all of them are read again whenever one has changed.
const MOST: usize = 10_000;

/// The largest definition that is offered, in bytes.
const MAX_DEFINITION: usize = 256 * 1024;
