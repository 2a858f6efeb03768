//! The cost of telemetry per call: nanoseconds of a call span with an attempt span, over a
//! service that answers at once.
//!
//! `cargo bench -p callward-telemetry --features otlp --bench telemetry_cost`; a word after `--`
//! leaves only the rows that have it in their name.
//!
//! Each row is processor time above that of the service alone: of the calling thread, in rounds
//! that alternate with the service alone, and of the whole process with the exporter's thread and
//! the final flush. Each row is measured in sixteen processes; the table shows the median, and half
//! of the interquartile range. Spans go to a collector in a process of its own.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and may panic"
)]

use std::process::ExitCode;

use callward_testkit::args::Args;
use callward_testkit::processes;

mod calls;
mod collector;
mod measure;
mod report;
mod rows;

use measure::{Found, Subject};
use rows::Row;

/// Calls per round.
const CALLS: u32 = 20_000;
/// Rounds of each row, shared between its processes.
const ROUNDS: usize = 120;

/// Measures one row and prints the figures, for the parent process.
const ROW: &str = "--row";

const USAGE: &str = "usage: cargo bench -p callward-telemetry --features otlp \
                     --bench telemetry_cost -- [PART OF A NAME]";

fn main() -> ExitCode {
    if std::env::args().any(|word| word == collector::COLLECTOR) {
        collector::collect();
        return ExitCode::SUCCESS;
    }
    callward_testkit::bench::main(run)
}

fn run() -> Result<(), String> {
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let args = Args::parse(words, &[processes::ROUNDS, ROW], USAGE)?;
    let mut rows = rows::all();
    if let Some(name) = args.value(ROW) {
        let row = rows.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| format!("there is no row {name:?}"))?;
        let found = beside(row.subject(), CALLS, args.number(processes::ROUNDS, 1)?);
        println!("{}", found.to_json());
        return Ok(());
    }
    rows.retain(|row| row.name.contains(args.file().unwrap_or_default()));
    // `cargo test --benches` only proves that it runs
    let table = match std::env::args().any(|word| word == "--bench") {
        true => {
            let found: Result<Vec<_>, _> = rows.iter().map(asked).collect();
            report::table(&rows, &found?)
        }
        false => report::table(&rows, &rows.iter().map(tried).collect::<Vec<_>>()),
    };
    print!("{table}");
    Ok(())
}

/// Measures a row in other processes.
fn asked(row: &Row) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    processes::ask(ROUNDS, &[ROW, &row.name], |value| {
        found.push(Found::from_json(value)?);
        Some(())
    })?;
    Ok(found)
}

/// Measures a few calls of a row in this process.
fn tried(row: &Row) -> Vec<Found> {
    vec![beside(row.subject(), 10, 1)]
}

/// Measures a subject against the service alone.
fn beside(subject: Subject, calls: u32, rounds: u32) -> Found {
    measure::beside(rows::alone(), subject, calls, rounds)
}
