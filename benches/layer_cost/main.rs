//! What each layer costs around a service that answers at once, beside the same layer of
//! `tower-resilience`, in one run.
//!
//! `cargo bench --bench layer_cost`, after `--` with `--json` for a line for each row, `--rounds N`
//! for more or fewer than 60 rounds, and a part of a name for the rows whose name has it.
//!
//! **What is called.** Both sides wrap the same service and get the same requests: a `ToolCall` of a
//! read-only tool with 200 bytes of arguments, answered at once with the same `ToolOutput`. Neither
//! side is spared anything: each call asks for readiness, calls, and awaits, on a tokio runtime of
//! its thread, and drops the answer. Requests are made before the clock starts. Two threads share
//! one layer, and nothing else: each has a tool, arguments, a caller and an answer of its own, so
//! what two threads cost more is the layer's.
//!
//! **What is set.** Each pair does as nearly the same as their settings allow, with nothing
//! optional turned on at theirs: no listeners, no metrics, no tracing. Where a feature is always
//! there in ours and optional in theirs, theirs stands without it, in a second row with it.
//! Limits are so high that no call waits. The cache is the exception: its key is a keyed hash of the
//! arguments in their normal form, of who asks and of what the tool is, and two spellings of one call
//! meet; theirs takes the bytes of the arguments for the key, and knows no tools and no callers.
//!
//! A breaker check is what a closed breaker does before and after one call: `admit_ref` and `succeed`.
//! The owned one clones and drops the `Arc` of the breaker besides, to which two threads both write.
//!
//! **What is shown.** Rows take turns, ours and theirs next to each other, round by round, so that a
//! change of the machine's load meets all of them. A run is so many calls; its time is what the
//! processor gave to the thread, not what passed on the wall. Shown is the median run less that of
//! the service alone: what the layer adds. `times` is theirs over ours; `whole` is the same
//! without taking the service off. `±` is half of the range in which the middle half of runs lies.
//! A run of two threads counts if both had a processor all the time; how many did is told below.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::process::ExitCode;

use callward_testkit::args::Args;

mod calls;
mod measure;
mod ours;
mod report;
mod rows;
mod theirs;

const USAGE: &str =
    "usage: cargo bench --bench layer_cost -- [--json] [--rounds N] [PART OF A NAME]";

fn main() -> ExitCode {
    // cargo itself passes `--bench`, and `cargo test --benches` does not: one round shows it runs
    let measured = std::env::args().any(|word| word == "--bench");
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let read = Args::parse(words, &["--rounds"], USAGE).and_then(|args| {
        let rounds = match args.value("--rounds") {
            Some(rounds) => rounds
                .parse()
                .map_err(|_| format!("--rounds {rounds:?} is no number\n{USAGE}"))?,
            None if measured => 60,
            None => 1,
        };
        Ok((args, rounds))
    });
    let (args, rounds) = match read {
        Ok(read) => read,
        Err(fault) => {
            println!("{fault}");
            return ExitCode::from(2);
        }
    };
    let mut rows = rows::all();
    if let Some(part) = args.file() {
        rows.retain(|row| row.is_bare() || row.name.contains(part));
    }
    for _ in 0..rounds {
        for row in &mut rows {
            row.round();
        }
    }
    if args.json() {
        report::json(&rows);
    } else {
        report::table(&rows);
    }
    ExitCode::SUCCESS
}
