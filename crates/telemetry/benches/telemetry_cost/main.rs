//! The cost of telemetry per call: nanoseconds of a call span with an attempt span, over a
//! service that answers at once.
//!
//! `cargo bench -p callward-telemetry --features otlp --bench telemetry_cost`; a word after `--`
//! leaves only the rows that have it in their name, and `--instructions` counts instructions under
//! `valgrind` in place of time.
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
/// Runs one row this many times, to be counted from outside.
const COUNT: &str = "--count";
/// Counted calls: the difference to twice as many is the cost of one.
const COUNTED: u32 = 50_000;

const USAGE: &str = "usage: cargo bench -p callward-telemetry --features otlp \
                     --bench telemetry_cost -- [--instructions] [PART OF A NAME]";

fn main() -> ExitCode {
    if std::env::args().any(|word| word == collector::COLLECTOR) {
        collector::collect();
        return ExitCode::SUCCESS;
    }
    callward_testkit::bench::main(run)
}

fn run() -> Result<(), String> {
    let is = |flag: &'static str| std::env::args().any(|word| word == flag);
    let words = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench" && word != "--instructions");
    let args = Args::parse(words, &[processes::ROUNDS, ROW, COUNT], USAGE)?;
    let number = |option: &str| args.value(option).and_then(|word| word.parse().ok());
    if let Some(name) = args.value(ROW) {
        let subject = rows::named(name).ok_or_else(|| format!("there is no row {name:?}"))?;
        match (number(COUNT), number(processes::ROUNDS)) {
            (Some(calls), _) => subject.repeat(calls),
            (None, rounds) => println!("{}", beside(subject, CALLS, rounds.unwrap_or(1)).to_json()),
        }
        return Ok(());
    }
    let mut rows = rows::all();
    rows.retain(|row| row.name.contains(args.file().unwrap_or_default()));
    if is("--instructions") {
        return instructions(&rows);
    }
    // `cargo test --benches` only proves that it runs
    let table = match is("--bench") {
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

/// Counts each row's instructions above those of the service alone.
fn instructions(rows: &[Row]) -> Result<(), String> {
    println!("| instructions per call | thread | process |");
    println!("| --- | ---: | ---: |");
    let alone = counted(rows::ALONE)?;
    for row in rows {
        let [thread, process] = counted(&row.name)?;
        let (thread, process) = (thread - alone[0], process - alone[1]);
        println!("| {} | {thread:.1} | {process:.1} |", row.name);
    }
    Ok(())
}

fn counted(row: &str) -> Result<[f64; 2], String> {
    let mut both = [0.0; 2];
    let places = [Some("*telemetry_cost*measure*counted*"), None];
    for (figure, place) in both.iter_mut().zip(places) {
        let count = |calls: u32| {
            let words = [ROW, row, COUNT, &calls.to_string()];
            processes::instructions(place, &words)
        };
        let (few, more) = (count(COUNTED)?, count(2 * COUNTED)?);
        *figure = (more as f64 - few as f64) / f64::from(COUNTED);
    }
    Ok(both)
}
