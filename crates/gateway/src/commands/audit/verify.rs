//! `callward audit verify`: whether logs are all there and as they were written.

use std::process::ExitCode;

use callward::audit::{Report, verify};
use serde::Serialize;

use crate::args::Verify;
use crate::audit::read_key;
use crate::config::show_size;
use crate::error::{AppError, Outcome};
use crate::output::{Screen, Tone};

/// A log of fewer bytes is read before anybody looks.
const LONG: u64 = 64 << 20;

pub(super) fn run(args: &Verify, screen: &Screen) -> Outcome {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let mut code = ExitCode::SUCCESS;
    let reports = verify(&args.paths, key.as_ref(), &mut |progress| {
        if progress.bytes >= LONG && progress.bytes.is_multiple_of(LONG) {
            screen.note(format_args!(
                "{}: {} read",
                progress.file.display(),
                show_size(progress.bytes)
            ));
        }
    })
    .map_err(AppError::io("a log cannot be read"))?;
    for report in &reports {
        if !report.is_whole() {
            code = ExitCode::FAILURE;
        }
        match args.json {
            true => screen.json(&Told {
                whole: report.is_whole(),
                report,
            }),
            false => show(report, screen),
        }
    }
    Ok(code)
}

#[derive(Serialize)]
struct Told<'a> {
    whole: bool,
    #[serde(flatten)]
    report: &'a Report,
}

fn show(report: &Report, screen: &Screen) {
    let word = match (&report.fault, report.closed) {
        (None, Some(false)) => screen.toned("whole, not closed", Tone::Doubtful),
        (None, _) => screen.toned("whole", Tone::Good),
        (Some(_), _) => screen.toned("NOT WHOLE", Tone::Bad),
    };
    screen.out(format_args!(
        "{}: {word}: {} records in {} files ({} calls, {} refused), {}",
        report.log.display(),
        report.records,
        report.files,
        report.calls,
        report.refused,
        show_size(report.bytes),
    ));
    if let (Some((first, from)), Some((last, to))) = (&report.first, &report.last) {
        screen.out(format_args!("  from {first} at {from} to {last} at {to}"));
    }
    if let Some(fault) = &report.fault {
        screen.out(format_args!("  {fault}"));
    }
    if report.fault.is_none() && report.closed == Some(false) {
        screen.out(format_args!(
            "  not closed: it is being written, or its process was killed, and the last calls that it \
             answered may have no record (`audit.fsync`)"
        ));
    }
    for (count, what) in [
        (
            report.unclosed,
            "processes ended without closing the log: the last calls that they answered may have no \
             record",
        ),
        (
            report.repaired,
            "lines broke off when a process stopped, and were repaired",
        ),
        (
            report.lost,
            "calls have no record: the file could not be written",
        ),
        (
            report.suppressed,
            "refusals have no record: there were too many",
        ),
        (
            report.after_head,
            "records stand behind the one that the head names",
        ),
    ] {
        if count > 0 {
            screen.out(format_args!("  {count} {what}"));
        }
    }
    for note in &report.notes {
        screen.out(format_args!("  {note}"));
    }
}
