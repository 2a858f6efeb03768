//! `callward annotate`: the hints and plan of each tool, as JSON lines.
//!
//! All of the input is read and inferred from before the first line is written: tools of one server
//! may stand far apart, and are evidence for each other.

use std::collections::HashMap;
use std::process::ExitCode;

use callward::core::infer::{Inference, Lexicon, Listed as Sibling};
use callward::core::{AnnotationProblem, Hints, Inferred, Judgement, SafetyLevel, judge};
use callward::{Annotations, CallPlan};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::Annotate;
use crate::config::{Config, ServerConfig};
use crate::error::Outcome;
use crate::listed::{Fault, Listed, Listing};
use crate::output;
use crate::view::with_values;

pub(crate) async fn run(args: Annotate) -> Outcome {
    let listing = Listing::read(&args.from).await?;
    let (found, config) = (&listing.found, &listing.config);
    let tools: Vec<Readable<'_>> = found
        .iter()
        .map(|found| {
            let tool = found.tool.as_ref().map_err(Clone::clone)?;
            Ok((tool, tool.declared()?))
        })
        .collect();
    let groups = found.iter().map(|found| found.group);
    let lexicon = config.lexicon.as_ref();
    let inference = Inference {
        rules: args.rules.unwrap_or(config.rules),
        lexicon: lexicon.unwrap_or_else(|| Lexicon::standard()),
    };
    let inferred = infer(inference, groups, &tools);

    listing.failures.iter().for_each(output::error);
    let mut lines = Vec::new();
    for ((tool, inferred), found) in tools.iter().zip(&inferred).zip(found) {
        lines.push(line(tool, inferred, config, &args));
        if let Err(fault) = tool {
            output::error(&format_args!("{}: {fault}", found.place));
        }
    }
    if !lines.is_empty() {
        output::line(lines.join("\n"));
    }
    let failed = !listing.failures.is_empty() || tools.iter().any(Result::is_err);
    Ok(ExitCode::from(u8::from(failed)))
}

/// A tool with its declared hints, or the fault in its place.
type Readable<'a> = Result<(&'a Listed, Annotations), Fault>;

/// Infers the hints of all tools, server by server.
fn infer(
    inference: Inference<'_>,
    groups: impl Iterator<Item = usize>,
    tools: &[Readable<'_>],
) -> Vec<Inferred> {
    let mut inferred = vec![Inferred::default(); tools.len()];
    let mut servers: HashMap<usize, Vec<_>> = HashMap::new();
    for (group, (tool, slot)) in groups.zip(tools.iter().zip(&mut inferred)) {
        if let Ok((tool, declared)) = tool {
            let subject = tool.subject();
            let listed = Sibling { subject, declared };
            servers.entry(group).or_default().push((listed, slot));
        }
    }
    for server in servers.into_values() {
        let (listed, slots): (Vec<_>, Vec<_>) = server.into_iter().unzip();
        for (slot, conclusions) in slots.into_iter().zip(inference.infer_all(&listed)) {
            *slot = conclusions;
        }
    }
    inferred
}

/// Judges a tool by the command line, else by the config, else by the defaults.
fn judged(
    tool: &Listed,
    inferred: &Inferred,
    declared: &Annotations,
    config: &Config,
    args: &Annotate,
) -> Judgement {
    let is_its = |server: &&ServerConfig| Some(server.id.as_str()) == tool.server.as_deref();
    let server = config.servers.iter().find(is_its);
    let trust = args.trust.or_else(|| Some(server?.table.trust));
    let operator = server.and_then(|server| server.table.tools.get(tool.name()));
    let hints = Hints {
        server_defaults: server.map(|server| &server.table.annotations),
        operator: operator.map(|operator| &operator.hints),
        ..Hints::new(inferred, declared, trust.unwrap_or_default())
    };
    judge(&hints, args.profile.as_ref().unwrap_or(&config.profile))
}

/// Describes one tool, or the fault in its place.
fn line(tool: &Readable<'_>, inferred: &Inferred, config: &Config, args: &Annotate) -> String {
    let (tool, declared) = match tool {
        Ok((tool, declared)) => (tool, declared),
        Err(fault) => return json!({ "name": fault.name, "error": fault.reason }).to_string(),
    };
    let judged = judged(tool, inferred, declared, config, args);
    let problem = |problem: &AnnotationProblem| {
        json!({
            "field": problem.field(),
            "severity": problem.severity(),
            "message": problem.to_string(),
        })
    };
    let mut why = Map::new();
    if args.explain {
        let evidence = judged.resolved.provenance.iter().map(|entry| {
            let reason = with_values(json!({
                "source": entry.source,
                "reason": entry.reason,
                "strength": entry.strength,
            }));
            (entry.field.as_str().to_owned(), reason)
        });
        why.insert("evidence".into(), Value::Object(evidence.collect()));
        why.insert("warnings".into(), json!(judged.resolved.warnings));
    }
    let line = Line {
        name: tool.name(),
        server: tool.server.as_deref(),
        annotations: &judged.resolved.annotations,
        safety_level: judged.plan.effect.safety_level(),
        plan: &judged.plan,
        problems: judged.problems.iter().map(problem).collect(),
        why,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    annotations: &'a Annotations,
    safety_level: SafetyLevel,
    plan: &'a CallPlan,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Value>,
    #[serde(flatten)]
    why: Map<String, Value>,
}
