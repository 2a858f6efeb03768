//! `callward audit show`: the records of a log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use callward::audit::files;
use serde_json::Value;

use crate::args::Show;
use crate::commands::ask::cell;
use crate::error::{AppError, Outcome};
use crate::output::{self, Cell, Column, Table, Tone};

pub(super) fn run(args: &Show) -> Outcome {
    let cannot = |path: &Path| AppError::io(format!("{} cannot be read", path.display()));
    let files = files(&args.path).map_err(cannot(&args.path))?;
    if files.is_empty() {
        return Err(AppError::Usage(format!(
            "{}: no such log; name the file that `audit.path` of the config names",
            args.path.display()
        )));
    }
    let mut found: VecDeque<(Value, String)> = VecDeque::new();
    for path in &files {
        let file = std::fs::File::open(path).map_err(cannot(path))?;
        for line in BufReader::new(file).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(cannot(path))?).into_owned();
            // `verify` reports lines that are not records
            let Ok(record) = serde_json::from_str::<Value>(&line) else {
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
        found.iter().for_each(|(_, line)| output::line(line));
        return Ok(ExitCode::SUCCESS);
    }
    let records = found.iter().map(|(record, _)| record);
    output::table(&Table::of(&COLUMNS, records));
    Ok(ExitCode::SUCCESS)
}

fn is_asked(args: &Show, record: &Value) -> bool {
    let of = |key: &str| record[key].as_str();
    let is = |asked: &Option<String>, key: &str| asked.is_none() || asked.as_deref() == of(key);
    matches!(of("kind"), Some("call" | "refused"))
        && is(&args.tool, "tool")
        && is(&args.outcome, "outcome")
        && is(&args.principal, "principal")
        // times are written so that their order is that of their texts
        && args.since.as_deref().is_none_or(|since| of("time") >= Some(since))
}

const COLUMNS: [Column<Value>; 8] = [
    ("seq", |record| cell(&record["seq"])),
    ("time", |record| cell(&record["time"])),
    ("tool", |record| cell(&record["tool"])),
    ("outcome", outcome),
    ("principal", |record| cell(&record["principal"])),
    ("client", |record| {
        let client = ["name", "version"].map(|key| &record["client"][key]);
        match client.map(Value::as_str) {
            [Some(name), Some(version)] => Cell::plain(format_args!("{name} {version}")),
            _ => cell(client[0]),
        }
    }),
    ("server", |record| cell(&record["server"])),
    ("cache", |record| cell(&record["cache"])),
];

fn outcome(record: &Value) -> Cell {
    let outcome = record["outcome"].as_str().unwrap_or_default();
    let tone = match outcome {
        "answered" => None,
        "refused" | "cancelled" => Some(Tone::Doubtful),
        _ => Some(Tone::Bad),
    };
    match record["decision"]["by"].as_str() {
        Some(by) => Cell::toned(format_args!("{outcome} ({by})"), tone),
        None => Cell::toned(outcome, tone),
    }
}
