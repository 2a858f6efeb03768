//! `callward lint`: findings for the author of a server.

use std::process::ExitCode;

use callward::core::lint::{Candidate, Code, Finding, Severity, check};
use serde_json::json;

use crate::args::Lint;
use crate::error::Outcome;
use crate::listed::Listing;
use crate::output::{self, Tone, counted};
use crate::plain;
use crate::table;

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
    let mut errors: Vec<String> = listing.failures.iter().map(ToString::to_string).collect();
    let mut candidates = Vec::new();
    for found in &listing.found {
        match &found.tool {
            Ok(tool) => candidates.push(Candidate {
                subject: tool.subject(),
                definition: serde_json::from_str(&tool.text).ok(),
            }),
            Err(fault) => errors.push(format!("{}: {fault}", found.place)),
        }
    }
    if candidates.is_empty() && errors.is_empty() {
        errors.push("no tools to look at".to_owned());
    }
    errors.iter().for_each(output::error);
    let mut findings = check(&candidates);
    findings.retain(|finding| !args.allow.contains(&finding.code));

    let strict = args.strict.then_some(Severity::Warning);
    let least = strict.unwrap_or(args.deny);
    if candidates.is_empty() && !args.json {
        return Ok(ExitCode::from(UNREADABLE));
    }
    let count = |is: &dyn Fn(Severity) -> bool| {
        let severities = findings.iter().map(|finding| finding.severity);
        severities.filter(|severity| is(*severity)).count()
    };
    let counts = [Severity::Error, Severity::Warning, Severity::Info];
    let counts = counts.map(|severity| count(&|one| one == severity));
    let denied = count(&|one| one >= least);
    if args.json {
        findings.iter().for_each(output::json);
        let [errors, warnings, infos] = counts;
        output::json(&json!({ "summary": {
            "tools": candidates.len(),
            "errors": errors,
            "warnings": warnings,
            "infos": infos,
            "denied": denied,
        } }));
    } else {
        show(&findings, counts, candidates.len());
    }
    Ok(match denied {
        _ if !errors.is_empty() => ExitCode::from(UNREADABLE),
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn codes(as_json: bool) {
    let codes = Code::ALL.iter().map(|code| {
        json!({
            "code": code,
            "severity": code.severity(),
            "summary": code.meaning(),
        })
    });
    let codes: Vec<_> = codes.collect();
    match as_json {
        true => codes.iter().for_each(output::json),
        false => table::print("code severity summary", &codes),
    }
}

/// Shows findings tool by tool, and their numbers at the end.
fn show(findings: &[Finding], [errors, warnings, infos]: [usize; 3], tools: usize) {
    for of_tool in findings.chunk_by(|one, next| one.index == next.index) {
        if let [first, ..] = of_tool {
            let server = first.server.as_deref().map(aside).unwrap_or_default();
            let line = format!("{}  {server}", plain::line(&first.tool));
            output::line(line.trim_end());
        }
        for finding in of_tool {
            let severity = format!("{:7}", finding.severity);
            let severity = output::toned(severity, tone(finding.severity));
            let (field, message) = (plain::line(&finding.field), plain::line(&finding.message));
            let code = aside(finding.code.as_str());
            output::line(format_args!("  {severity}  {field} {message}  {code}"));
            output::line(format_args!("           {}", plain::line(&finding.advice)));
        }
        output::line("");
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    let sum = format!(
        "{}, {} and {} in {}",
        counted(&errors, "error"),
        counted(&warnings, "warning"),
        counted(&infos, "info"),
        counted(&tools, "tool"),
    );
    output::line(output::toned(sum, worst.map_or(Tone::Good, tone)));
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
