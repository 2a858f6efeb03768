//! `callward lint`: what the author of a server should look at.

use std::io::{self, Write};
use std::process::ExitCode;

use callward::core::lint::{Candidate, Code, Finding, Severity, check};
use serde::Serialize;
use serde_json::json;

use crate::args::Lint;
use crate::error::Outcome;
use crate::listed::{Listed, Listing};
use crate::output::{Screen, Tone};
use crate::plain;

/// The input cannot be read, or the command line is wrong.
const UNREADABLE: u8 = 2;

pub(crate) async fn run(args: Lint, screen: &Screen) -> Outcome {
    if args.codes {
        codes(args.json, screen);
        return Ok(ExitCode::SUCCESS);
    }
    let listing = match Listing::read(&args.from, screen).await {
        Ok(listing) => listing,
        Err(error) => {
            screen.error(&error);
            return Ok(ExitCode::from(UNREADABLE));
        }
    };
    let (tools, readable) = tools(&listing, screen);
    let candidates: Vec<_> = tools.iter().map(candidate).collect();
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
    screen.bulk(|out| {
        if args.json {
            write_json(out, &findings, &sum)
        } else {
            write_text(out, &findings, &sum, screen)
        }
    });
    Ok(match (readable, sum.denied) {
        (false, _) => ExitCode::from(UNREADABLE),
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::FAILURE,
    })
}

/// Returns what can be looked at, and whether that is all there was, and anything.
fn tools<'a>(listing: &'a Listing, screen: &Screen) -> (Vec<Listed<'a>>, bool) {
    let mut tools = Vec::new();
    let mut readable = true;
    for error in listing.live().into_iter().flat_map(|live| live.failures()) {
        screen.error(error);
        readable = false;
    }
    for found in listing.found() {
        match found.tool {
            Ok(tool) => tools.push(tool),
            Err(fault) => {
                screen.error(&format_args!("{}: {fault}", found.place));
                readable = false;
            }
        }
    }
    if tools.is_empty() && readable {
        screen.error(&"no tools to look at");
        readable = false;
    }
    (tools, readable)
}

fn candidate<'a>(tool: &'a Listed<'_>) -> Candidate<'a> {
    let candidate = Candidate::new(tool.subject());
    match serde_json::from_str(tool.text) {
        Ok(definition) => candidate.with_definition(definition),
        Err(_) => candidate,
    }
}

fn codes(json: bool, screen: &Screen) {
    if json {
        for code in Code::ALL {
            screen.json(&json!({
                "code": code.as_str(),
                "severity": code.severity().as_str(),
                "summary": code.meaning(),
            }));
        }
        return;
    }
    let width = Code::ALL.iter().map(|code| code.as_str().len()).max();
    for code in Code::ALL {
        screen.out(format_args!(
            "{:width$}  {}  {}",
            code,
            screen.toned(format_args!("{:7}", code.severity()), tone(code.severity())),
            code.meaning(),
            width = width.unwrap_or(0)
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
        let count = |wanted: fn(Severity, Severity) -> bool, level| {
            let found = findings
                .iter()
                .filter(|finding| wanted(finding.severity, level));
            found.count()
        };
        Self {
            tools,
            errors: count(|one, level| one == level, Severity::Error),
            warnings: count(|one, level| one == level, Severity::Warning),
            infos: count(|one, level| one == level, Severity::Info),
            denied: count(|one, level| one >= level, least),
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

fn counted(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

fn write_json(out: &mut dyn Write, findings: &[Finding], sum: &Sum) -> io::Result<()> {
    for finding in findings {
        serde_json::to_writer(&mut *out, finding)?;
        out.write_all(b"\n")?;
    }
    serde_json::to_writer(&mut *out, &json!({ "summary": sum }))?;
    out.write_all(b"\n")
}

/// Tool by tool, and the sum at the end.
fn write_text(
    out: &mut dyn Write,
    findings: &[Finding],
    sum: &Sum,
    screen: &Screen,
) -> io::Result<()> {
    for tool in findings.chunk_by(|a, b| a.index == b.index) {
        if let Some(first) = tool.first() {
            match &first.server {
                Some(server) => writeln!(
                    out,
                    "{}  {}",
                    plain::line(&first.tool),
                    aside(server, screen)
                )?,
                None => writeln!(out, "{}", plain::line(&first.tool))?,
            }
        }
        for finding in tool {
            writeln!(
                out,
                "  {}  {} {}  {}",
                screen.toned(
                    format_args!("{:7}", finding.severity),
                    tone(finding.severity)
                ),
                plain::line(&finding.field),
                plain::line(&finding.message),
                aside(finding.code.as_str(), screen),
            )?;
            writeln!(out, "           {}", plain::line(&finding.advice))?;
        }
        writeln!(out)?;
    }
    let (text, worst) = (sum.text(), findings.iter().map(|f| f.severity).max());
    writeln!(
        out,
        "{}",
        screen.toned(text, worst.map_or(Tone::Good, tone))
    )
}

fn aside(text: &str, screen: &Screen) -> String {
    screen.toned(plain::line(text), Tone::Aside)
}

const fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Doubtful,
        Severity::Info => Tone::Aside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_counted_without_a_plural() {
        let sum = Sum {
            tools: 1,
            errors: 0,
            warnings: 1,
            infos: 2,
            denied: 0,
        };
        assert_eq!(sum.text(), "0 errors, 1 warning and 2 infos in 1 tool");
    }
}
