//! `callward audit show`: the records of a log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use callward::audit::files;
use serde::Deserialize;

use crate::args::Show;
use crate::error::{AppError, Outcome};
use crate::output::{Cell, Screen, Table, Tone};

/// What a row is made of.
#[derive(Debug, Deserialize)]
struct Record {
    seq: u64,
    time: String,
    kind: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    principal: Option<String>,
    #[serde(default)]
    client: Client,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    cache: Option<String>,
    #[serde(default)]
    decision: Option<Decision>,
}

#[derive(Debug, Default, Deserialize)]
struct Client {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    version: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Decision {
    #[serde(default)]
    by: Option<String>,
}

pub(super) fn run(args: &Show, screen: &Screen) -> Outcome {
    let cannot = |path: &Path| AppError::io(format!("{} cannot be read", path.display()));
    let files = files(&args.path).map_err(cannot(&args.path))?;
    if files.is_empty() {
        return Err(AppError::Usage(format!(
            "{}: no such log; name the file that `audit.path` of the config names",
            args.path.display()
        )));
    }
    let mut found: VecDeque<(Record, String)> = VecDeque::new();
    for path in &files {
        let file = std::fs::File::open(path).map_err(cannot(path))?;
        for line in BufReader::new(file).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(cannot(path))?).into_owned();
            // `verify` reports lines that are not records
            let Ok(record) = serde_json::from_str::<Record>(&line) else {
                continue;
            };
            if !is_asked(args, &record) {
                continue;
            }
            if args.last.is_some_and(|most| found.len() >= most) {
                found.pop_front();
            }
            found.push_back((record, line));
        }
    }
    if args.json {
        found.iter().for_each(|(_, line)| screen.out(line));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&[
        "seq",
        "time",
        "tool",
        "outcome",
        "principal",
        "client",
        "server",
        "cache",
    ]);
    for (record, _) in &found {
        table.row(row(record));
    }
    screen.table(&table);
    Ok(ExitCode::SUCCESS)
}

fn is_asked(args: &Show, record: &Record) -> bool {
    let is_call = record.kind == "call" || record.kind == "refused";
    let is = |asked: &Option<String>, found: Option<&str>| {
        asked.as_deref().is_none_or(|asked| found == Some(asked))
    };
    is_call
        && is(&args.tool, Some(&record.tool))
        && is(&args.outcome, Some(&record.outcome))
        && is(&args.principal, record.principal.as_deref())
        // times are written so that their order is that of their texts
        && args.since.as_ref().is_none_or(|since| *record.time >= **since)
}

fn row(record: &Record) -> Vec<Cell> {
    let or_dash = |text: &Option<String>| Cell::plain(text.as_deref().unwrap_or("-"));
    let by = record
        .decision
        .as_ref()
        .and_then(|decision| decision.by.as_deref());
    let outcome = match by {
        Some(by) => format!("{} ({by})", record.outcome),
        None => record.outcome.clone(),
    };
    let tone = match record.outcome.as_str() {
        "answered" => None,
        "refused" | "cancelled" => Some(Tone::Doubtful),
        _ => Some(Tone::Bad),
    };
    let client = match (&record.client.name, &record.client.version) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name.clone(),
        (None, _) => "-".to_owned(),
    };
    vec![
        Cell::plain(record.seq),
        Cell::plain(&record.time),
        Cell::plain(&record.tool),
        Cell::toned(outcome, tone),
        or_dash(&record.principal),
        Cell::plain(client),
        or_dash(&record.server),
        or_dash(&record.cache),
    ]
}
