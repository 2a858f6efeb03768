//! `callward audit show`: the records of a log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use callward::audit::files;
use serde_json::Value;

use crate::args::Show;
use crate::error::{AppError, Outcome};
use crate::output;
use crate::table;

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
    for (record, _) in &mut found {
        if let (Some(outcome), Some(by)) = (
            record["outcome"].as_str(),
            record["decision"]["by"].as_str(),
        ) {
            record["outcome"] = format!("{outcome} ({by})").into();
        }
    }
    table::print(COLUMNS, found.iter().map(|(record, _)| record));
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

const COLUMNS: &str =
    "seq time tool outcome principal client=client.name version=client.version server cache";
