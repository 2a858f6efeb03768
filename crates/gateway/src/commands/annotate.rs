//! `callward annotate`: what is made of each tool, as JSON lines.
//!
//! All of the input is read and inferred from before the first line is written: tools of one server
//! may stand far apart, and are evidence for each other.

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;

use callward::core::infer::{Inference, Listed as Sibling};
use callward::core::resolve::Provenance;
use callward::core::{
    AnnotationProblem, Field, Hints, Inferred, Judgement, SafetyLevel, Severity, Source, judge,
};
use callward::{Annotations, CallPlan, Profile, Trust};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::args::Annotate;
use crate::config::{Config, ServerConfig};
use crate::error::Outcome;
use crate::listed::{Fault, Group, Listed, Listing};
use crate::output::Screen;
use crate::view::strength_word;

/// So often is told how far it has come.
const TELL_EVERY: usize = 50_000;

pub(crate) async fn run(args: Annotate, screen: &Screen) -> Outcome {
    let listing = Listing::read(&args.from, screen).await?;
    let found = listing.found();
    let settings = Settings::of(&args, listing.live().map(|live| &live.config));
    let tools: Vec<Readable<'_>> = found
        .iter()
        .map(|found| {
            let tool = found.tool.as_ref().map_err(Clone::clone)?;
            Ok((tool, tool.declared()?))
        })
        .collect();
    let groups = found.iter().map(|found| found.group);
    let inferred = infer(settings.inference, groups, &tools);

    let all = found.len();
    let mut failed = false;
    for error in listing.live().into_iter().flat_map(|live| live.failures()) {
        screen.error(error);
        failed = true;
    }
    screen.bulk(|out| {
        // a line is put together here: a serializer writes in very small pieces
        let mut line = Vec::new();
        for (done, (tool, inferred)) in tools.iter().zip(&inferred).enumerate() {
            line.clear();
            write_line(&mut line, tool, inferred, &settings, args.explain)?;
            out.write_all(&line)?;
            if let (Err(fault), Some(found)) = (tool, found.get(done)) {
                screen.error(&format_args!("{}: {fault}", found.place));
                failed = true;
            }
            if done % TELL_EVERY == 0 {
                screen.progress(done, all);
            }
        }
        Ok(())
    });
    screen.progress(all, all);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A tool and what it declares, or why there is none.
type Readable<'a> = Result<(&'a Listed<'a>, Annotations), Fault>;

/// Draws conclusions about all tools, server by server.
fn infer(
    inference: Inference<'_>,
    groups: impl Iterator<Item = Group>,
    tools: &[Readable<'_>],
) -> Vec<Inferred> {
    let mut order: Vec<(Group, usize, Sibling<'_>)> = groups
        .zip(tools)
        .enumerate()
        .filter_map(|(at, (group, tool))| {
            let (tool, declared) = tool.as_ref().ok()?;
            Some((group, at, Sibling::new(tool.subject(), declared)))
        })
        .collect();
    order.sort_by_key(|(group, at, _)| (*group, *at));
    let mut inferred = vec![Inferred::default(); tools.len()];
    for server in order.chunk_by(|a, b| a.0 == b.0) {
        let listed: Vec<Sibling<'_>> = server.iter().map(|(.., listed)| *listed).collect();
        for ((_, at, _), conclusions) in server.iter().zip(inference.infer_all(&listed)) {
            if let Some(slot) = inferred.get_mut(*at) {
                *slot = conclusions;
            }
        }
    }
    inferred
}

/// How tools are judged: by the command line, else by the config, else by the defaults.
struct Settings<'a> {
    inference: Inference<'a>,
    profile: Profile,
    trust: Option<Trust>,
    servers: HashMap<&'a str, &'a ServerConfig>,
}

impl<'a> Settings<'a> {
    fn of(args: &Annotate, config: Option<&'a Config>) -> Self {
        let servers = config.iter().flat_map(|config| &config.servers);
        let rules = args
            .rules
            .or_else(|| config.map(|config| config.rules))
            .unwrap_or_default();
        let inference = Inference::new(rules);
        Self {
            inference: match config.and_then(|config| config.lexicon.as_ref()) {
                Some(lexicon) => inference.with_lexicon(lexicon),
                None => inference,
            },
            profile: args
                .profile
                .clone()
                .or_else(|| config.map(|config| config.profile.clone()))
                .unwrap_or_default(),
            trust: args.trust,
            servers: servers.map(|server| (server.id.as_str(), server)).collect(),
        }
    }

    fn judge(&self, tool: &Listed<'_>, inferred: &Inferred, declared: &Annotations) -> Judgement {
        let server = tool
            .server
            .as_deref()
            .and_then(|server| self.servers.get(server));
        let trust = self
            .trust
            .or_else(|| Some(server?.table.trust))
            .unwrap_or_default();
        let mut hints = Hints::new(inferred, declared, trust);
        if let Some(server) = server {
            hints = hints.with_server_defaults(&server.defaults);
            if let Some(operator) = server.tools.get(tool.name.as_ref()) {
                hints = hints.with_operator(&operator.hints);
            }
        }
        judge(&hints, &self.profile)
    }
}

/// Writes the line of one tool, or the one that stands in its place.
fn write_line(
    line: &mut Vec<u8>,
    tool: &Readable<'_>,
    inferred: &Inferred,
    settings: &Settings<'_>,
    explain: bool,
) -> io::Result<()> {
    match tool {
        Ok((tool, declared)) => {
            let judged = settings.judge(tool, inferred, declared);
            serde_json::to_writer(&mut *line, &Line::of(tool, &judged, explain))?;
        }
        Err(fault) => {
            let instead = FaultLine {
                name: fault.name.as_deref(),
                error: fault.reason(),
            };
            serde_json::to_writer(&mut *line, &instead)?;
        }
    }
    line.push(b'\n');
    Ok(())
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
    problems: Vec<Problem>,
    #[serde(flatten)]
    why: Option<Why<'a>>,
}

#[derive(Serialize)]
struct FaultLine<'a> {
    name: Option<&'a str>,
    error: &'a str,
}

/// What is wrong with a declared hint.
#[derive(Serialize)]
struct Problem {
    field: Field,
    severity: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Why<'a> {
    evidence: Evidence<'a>,
    warnings: &'a [String],
}

/// Who decided each hint, by its name.
struct Evidence<'a>(&'a [Provenance]);

#[derive(Serialize)]
struct Reason<'a> {
    source: Source,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<&'static str>,
}

impl<'a> Line<'a> {
    fn of(tool: &'a Listed<'_>, judged: &'a Judgement, explain: bool) -> Self {
        Self {
            name: &tool.name,
            server: tool.server.as_deref(),
            annotations: judged.resolved.annotations(),
            safety_level: judged.plan.safety_level(),
            plan: &judged.plan,
            problems: judged.problems.iter().map(Problem::of).collect(),
            why: explain.then(|| Why {
                evidence: Evidence(judged.resolved.all_provenance()),
                warnings: judged.resolved.warnings(),
            }),
        }
    }
}

impl Problem {
    fn of(problem: &AnnotationProblem) -> Self {
        Self {
            field: problem.field(),
            severity: match problem.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: problem.to_string(),
        }
    }
}

impl Serialize for Evidence<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for entry in self.0 {
            let reason = Reason {
                source: entry.source,
                reason: &entry.reason,
                strength: entry.strength.map(strength_word),
            };
            map.serialize_entry(&entry.field, &reason)?;
        }
        map.end()
    }
}
