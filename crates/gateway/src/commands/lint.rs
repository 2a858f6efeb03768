//! `callward lint`: findings for the author of a server.

use std::process::ExitCode;

use callward::core::lint::{Candidate, Code, Finding, Severity, check};
use serde::Serialize;
use serde_json::json;

use crate::args::Lint;
use crate::error::Outcome;
use crate::listed::{Listed, Listing};
use crate::output::{self, Tone, counted};
use crate::plain;

/// The input cannot be read, or the command line is wrong.
const UNREADABLE: u8 = 2;

pub(crate) async fn run(args: Lint) -> Outcome {
    if args.codes {
        codes(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let listing = match Listing::read(&args.from).await {
        Ok(listing) => listing,
        Err(error) => {
            output::error(&error);
            return Ok(ExitCode::from(UNREADABLE));
        }
    };
    let (tools, readable) = tools(&listing);
    let candidates: Vec<_> = tools.iter().copied().map(candidate).collect();
    let mut findings = check(&candidates);
    findings.retain(|finding| !args.allow.contains(&finding.code));

    let least = if args.strict {
        Severity::Warning
    } else {
        args.deny
    };
    if tools.is_empty() && !readable && !args.json {
        return Ok(ExitCode::from(UNREADABLE));
    }
    let sum = Sum::of(&findings, tools.len(), least);
    let lines = if args.json {
        let line = |finding| serde_json::to_string(finding).unwrap_or_default();
        let mut lines: Vec<String> = findings.iter().map(line).collect();
        lines.push(json!({ "summary": sum }).to_string());
        lines
    } else {
        lines(&findings, &sum)
    };
    output::line(lines.join("\n"));
    Ok(match (readable, sum.denied) {
        (false, _) => ExitCode::from(UNREADABLE),
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::FAILURE,
    })
}

/// Returns the tools that can be checked, whether all could be read, and whether there were any.
fn tools(listing: &Listing) -> (Vec<&Listed>, bool) {
    let mut tools = Vec::new();
    let mut readable = true;
    for error in &listing.failures {
        output::error(error);
        readable = false;
    }
    for found in &listing.found {
        match &found.tool {
            Ok(tool) => tools.push(tool),
            Err(fault) => {
                output::error(&format_args!("{}: {fault}", found.place));
                readable = false;
            }
        }
    }
    if tools.is_empty() && readable {
        output::error(&"no tools to look at");
        readable = false;
    }
    (tools, readable)
}

fn candidate(tool: &Listed) -> Candidate<'_> {
    Candidate {
        subject: tool.subject(),
        definition: serde_json::from_str(&tool.text).ok(),
    }
}

fn codes(json: bool) {
    if json {
        for code in Code::ALL {
            output::json(&json!({
                "code": code.as_str(),
                "severity": code.severity().as_str(),
                "summary": code.meaning(),
            }));
        }
        return;
    }
    let width = Code::ALL.iter().map(|code| code.as_str().len()).max();
    let width = width.unwrap_or(0);
    for code in Code::ALL {
        let severity = format!("{:7}", code.severity());
        let severity = output::toned(severity, tone(code.severity()));
        output::line(format_args!(
            "{code:width$}  {severity}  {}",
            code.meaning()
        ));
    }
}

/// How many findings of which kind.
#[derive(Debug, Clone, Copy, Serialize)]
struct Sum {
    tools: usize,
    errors: usize,
    warnings: usize,
    infos: usize,
    /// At or above the level that fails.
    denied: usize,
}

impl Sum {
    fn of(findings: &[Finding], tools: usize, least: Severity) -> Self {
        let count = |is: &dyn Fn(Severity) -> bool| {
            let severities = findings.iter().map(|finding| finding.severity);
            severities.filter(|severity| is(*severity)).count()
        };
        Self {
            tools,
            errors: count(&|one| one == Severity::Error),
            warnings: count(&|one| one == Severity::Warning),
            infos: count(&|one| one == Severity::Info),
            denied: count(&|one| one >= least),
        }
    }

    fn text(&self) -> String {
        format!(
            "{}, {} and {} in {}",
            counted(self.errors, "error"),
            counted(self.warnings, "warning"),
            counted(self.infos, "info"),
            counted(self.tools, "tool"),
        )
    }
}

/// Tool by tool, and the sum at the end.
fn lines(findings: &[Finding], sum: &Sum) -> Vec<String> {
    let mut lines = Vec::new();
    for tool in findings.chunk_by(|a, b| a.index == b.index) {
        if let Some(first) = tool.first() {
            let name = plain::line(&first.tool);
            lines.push(match &first.server {
                Some(server) => format!("{name}  {}", aside(server)),
                None => name,
            });
        }
        for finding in tool {
            let severity = format!("{:7}", finding.severity);
            let severity = output::toned(severity, tone(finding.severity));
            let (field, message) = (plain::line(&finding.field), plain::line(&finding.message));
            let code = aside(finding.code.as_str());
            lines.push(format!("  {severity}  {field} {message}  {code}"));
            lines.push(format!("           {}", plain::line(&finding.advice)));
        }
        lines.push(String::new());
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    lines.push(output::toned(sum.text(), worst.map_or(Tone::Good, tone)));
    lines
}

fn aside(text: &str) -> String {
    output::toned(plain::line(text), Tone::Aside)
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Doubtful,
        Severity::Info => Tone::Aside,
    }
}
