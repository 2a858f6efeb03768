//! The list of one server, with weighed hints and derived plans.

use std::sync::Arc;

use callward_core::infer;
use callward_core::{
    Hints, Inferred, Instances, Method, Refinements, ReplicaSetId, ServerId, Subject, Tool,
    ToolDefinition, Trust, judge, readable,
};

use crate::SetOptions;
use crate::catalogue::{Refusal, ToolNames};
#[cfg(feature = "schema")]
use crate::schema::{self, SchemaCheck};

/// The list of one server: tools that can be offered, and those that cannot.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// All that are listed, in order.
    pub(crate) definitions: Vec<ToolDefinition>,
    /// Those that can be offered with the current options, in the same order.
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) names: Arc<ToolNames>,
    pub(crate) refused: Vec<Refusal>,
    /// How the server divides its state among callers.
    pub(crate) instances: Instances,
}

impl Listing {
    /// Reads the list of a server.
    pub(crate) fn read(
        set: &ReplicaSetId,
        server: &ServerId,
        mut definitions: Vec<ToolDefinition>,
        instances: Instances,
        options: &SetOptions,
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
        let mut names = ToolNames::default();
        let inferred = infer(server, &definitions, options);
        for (definition, inferred) in definitions.iter().zip(inferred) {
            let name = &definition.name;
            let bound = if is_tool(definition) && Method::by_name(name.as_str()).is_some() {
                Err("its name is that of a method".to_owned())
            } else if names.contains(name) {
                Err("listed twice".to_owned())
            } else {
                bind(set, definition, &inferred, options)
            };
            match bound {
                Ok(mut tool) => {
                    tool.instances = options.instances.unwrap_or(instances);
                    names.insert(name.clone());
                    listing.tools.push(Arc::new(tool));
                }
                Err(reason) => listing.refused.push(Refusal::new(server, name, reason)),
            }
        }
        listing.definitions = definitions;
        listing.names = Arc::new(names);
        listing
    }
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
    options: &SetOptions,
) -> Result<Tool, String> {
    if let Some(fault) = &definition.fault {
        return Err(fault.to_string());
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
    let hints = Hints {
        server_defaults: Some(&options.defaults),
        operator: options.overrides.get(&definition.name),
        ..Hints::new(inferred, &definition.annotations, trust)
    };
    let is_volatile = inferred.volatile.is_some();
    let mut profile = options.profile_of(&definition.name, is_volatile);
    profile.caches &= definition.method.is_cacheable();
    let judged = judge(&hints, &profile);
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
    let mut tool = Tool::new(
        set.clone(),
        definition.clone(),
        judged.resolved,
        judged.plan,
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
