//! `callward audit`: verifies and shows audit logs.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use callward::audit::{Report, files, verify};
use serde_json::{Value, json};

use crate::args::{Audit, AuditCommand, Show, Verify};
use crate::audit::read_key;
use crate::config::show_size;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone, counted};
use crate::table;

pub(crate) async fn run(args: Audit) -> Outcome {
    super::on_a_thread(move || match args.command {
        AuditCommand::Verify(args) => verify_logs(&args),
        AuditCommand::Show(args) => show_records(&args),
    })
    .await
}

/// Shows the records of a log.
fn show_records(args: &Show) -> Outcome {
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
        let of = |path| record.pointer(path).and_then(Value::as_str);
        let by = of("/decision/by").or_else(|| of("/by"));
        if let (Some(outcome), Some(by)) = (of("/outcome"), by) {
            record["outcome"] = format!("{outcome} ({by})").into();
        }
    }
    table::print(COLUMNS, found.iter().map(|(record, _)| record));
    Ok(ExitCode::SUCCESS)
}

fn is_asked(args: &Show, record: &Value) -> bool {
    let of = |key: &str| record[key].as_str();
    // clients see the name of the set before it
    let [set, tool] = ["set", "tool"].map(|key| of(key).unwrap_or_default());
    let is_tool = |asked: &str| asked == tool || asked == format!("{set}__{tool}");
    let is = |asked: &Option<String>, key: &str| asked.is_none() || asked.as_deref() == of(key);
    matches!(of("kind"), Some("call" | "refused" | "approval"))
        && args.tool.as_deref().is_none_or(is_tool)
        && is(&args.outcome, "outcome")
        && (is(&args.principal, "principal")
            || args.principal.as_deref() == record["credential"]["name"].as_str())
        // times are written so that their order is that of their texts
        && args.since.as_deref().is_none_or(|since| of("time") >= Some(since))
}

const COLUMNS: &str = "seq time set tool outcome rule principal name=credential.name client=client.name \
     version=client.version server cache";

/// Detects changes of logs.
fn verify_logs(args: &Verify) -> Outcome {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let reports =
        verify(&args.paths, key.as_ref()).map_err(AppError::io("a log cannot be read"))?;
    for report in &reports {
        if args.json {
            let mut verified = json!(report);
            verified["whole"] = report.is_whole().into();
            output::json(&verified);
        } else {
            show_report(report);
        }
    }
    let is_whole = reports.iter().all(Report::is_whole);
    Ok(ExitCode::from(u8::from(!is_whole)))
}

fn show_report(report: &Report) {
    let word = match (&report.fault, report.closed) {
        (None, Some(false)) => output::toned("whole, not closed", Tone::Doubtful),
        (None, _) => output::toned("whole", Tone::Good),
        (Some(_), _) => output::toned("NOT WHOLE", Tone::Bad),
    };
    output::line(format_args!(
        "{}: {word}: {} in {} ({}, {} refused), {}",
        report.log.display(),
        counted(&report.records, "record"),
        counted(&report.files, "file"),
        counted(&report.calls, "call"),
        report.refused,
        show_size(report.bytes),
    ));
    for (level, count) in &report.approvals {
        let tools = format_args!("of tools with the security level {level}");
        let count = counted(count, "request");
        output::line(format_args!("  {count} for approval {tools}"));
    }
    if let (Some((first, from)), Some((last, to))) = (&report.first, &report.last) {
        output::line(format_args!("  from {first} at {from} to {last} at {to}"));
    }
    if let Some(fault) = &report.fault {
        output::line(format_args!("  {fault}"));
    }
    let is_open = report.fault.is_none() && report.closed == Some(false);
    if is_open {
        output::line(
            "  not closed: the log is being written, its process was killed, or its end was cut; the \
             last answered calls may have no record (`audit.fsync`)",
        );
    }
    #[rustfmt::skip]
    let counts = [
        (report.unclosed, "process", " ended without closing the log: the last calls answered then \
                           may have no record"),
        (report.torn, "partial line", ", cut off when a process was killed"),
        (report.lost, "call", " without a record: the file could not be written"),
        (report.suppressed, "refusal", " without a record: there were too many"),
    ];
    for (count, word, what) in counts.into_iter().filter(|(count, ..)| *count > 0) {
        output::line(format_args!("  {}{what}", counted(&count, word)));
    }
    if report.oldest > 1 {
        output::line(format_args!(
            "  begins with file {}: earlier files were deleted as configured",
            report.oldest
        ));
    }
}
