//! `callward audit verify`: detects changes of audit logs.

use std::process::ExitCode;

use callward::audit::{Report, verify};
use serde_json::json;

use crate::args::Verify;
use crate::audit::read_key;
use crate::config::show_size;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone};

pub(super) fn run(args: &Verify) -> Outcome {
    let key = args.key_file.as_deref().map(read_key).transpose()?;
    let reports =
        verify(&args.paths, key.as_ref()).map_err(AppError::io("a log cannot be read"))?;
    for report in &reports {
        if args.json {
            let mut verified = json!(report);
            verified["whole"] = report.is_whole().into();
            output::json(&verified);
        } else {
            show(report);
        }
    }
    let is_whole = reports.iter().all(Report::is_whole);
    Ok(ExitCode::from(u8::from(!is_whole)))
}

fn show(report: &Report) {
    let word = match (&report.fault, report.closed) {
        (None, Some(false)) => output::toned("whole, not closed", Tone::Doubtful),
        (None, _) => output::toned("whole", Tone::Good),
        (Some(_), _) => output::toned("NOT WHOLE", Tone::Bad),
    };
    output::line(format_args!(
        "{}: {word}: {} records in {} files ({} calls, {} refused), {}",
        report.log.display(),
        report.records,
        report.files,
        report.calls,
        report.refused,
        show_size(report.bytes),
    ));
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
        (report.unclosed, "processes ended without closing the log: their last answered calls may \
                           have no record"),
        (report.torn, "partial lines at the end of files, left by killed processes"),
        (report.lost, "calls have no record: the file could not be written"),
        (report.suppressed, "refusals have no record: there were too many"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        output::line(format_args!("  {count} {what}"));
    }
    if report.oldest > 1 {
        output::line(format_args!(
            "  begins with file {}: earlier files were deleted as configured",
            report.oldest
        ));
    }
}
