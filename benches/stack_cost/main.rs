//! What the whole stack costs: a cached call beside the least that any cache must do, an uncached
//! one beside the service without a stack, and which layer takes how much of it.
//!
//! `cargo bench --bench stack_cost`; after `--` with `--rounds N` for more or fewer than 40 rounds,
//! with `--json` for a line for each row, with `--instructions` to count instructions under
//! `valgrind` in place of time, and with a part of a name for the rows whose name has it.
//!
//! **What is called.** Tools that answer at once with some 230 bytes, by a service in this process
//! behind [`Tools`](callward::Tools). Calls have 200 bytes of arguments. Where a row says
//! *prepared*, calls are made before the clock starts; where it says *by name*, looking up the tool
//! and making the call is part of it.
//!
//! **What is set.** [`Stack::builder`](callward::Stack::builder) with nothing but a server: every
//! layer is there as it is by default. No one looks at spans, and no metrics are taken.
//!
//! **The floor** of a cached call is what any cache with a safe key does at least: one keyed hash
//! of the argument bytes (SipHash-1-3 with 128 bits) and one `get` of a bare `moka` cache that
//! takes this hash for its own. Both are rows of their own, over as many distinct calls.
//!
//! **An uncached call** is one that the cache passes on. A read whose answer is kept pays for that
//! on top: beside it stands what such a call takes at least, the floor of a cached one, a call past
//! the cache, and one `insert` of a bare `moka` cache that is full and evicts another entry for it.
//!
//! **Shares.** The layers are put around the service one at a time, innermost first, each as the
//! stack has it; what a row takes longer than the one before is the layer's. The last step is the
//! `Stack` itself: what it has around its layers, and the question to its catalogue whether a
//! server offers the tool. Differences of two medians are good to some ten nanoseconds, no more.
//!
//! **What is shown.** All rows take turns, round by round, so that a change of the machine's load
//! meets all of them, in sixteen processes one after the other, so that each gets other memory. A
//! round warms up with all distinct calls, and then times eight runs of 256 calls: runs so short
//! that few are interrupted. Before the first one, each read was answered from the cache forty
//! times. Shown is the median run, in nanoseconds a call, and what a call allocates. The tables of
//! a run of all rows are left in `target/bench-reports/stack_cost.md` too.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::process::ExitCode;

use callward_testkit::args::Args;
use callward_testkit::processes::ROUNDS;

mod calls;
mod instructions;
mod layers;
mod measure;
mod peer;
mod processes;
mod report;
mod rows;

const USAGE: &str = "usage: cargo bench --bench stack_cost -- \
                     [--json] [--rounds N] [--instructions] [PART OF A NAME]";

fn main() -> ExitCode {
    // cargo itself passes `--bench`, and `cargo test --benches` does not: one round shows it runs
    let measured = std::env::args().any(|word| word == "--bench");
    match run(measured) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("{fault}");
            ExitCode::from(2)
        }
    }
}

fn run(measured: bool) -> Result<(), String> {
    let words = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench" && word != "--instructions");
    let counts = std::env::args().any(|word| word == "--instructions");
    let options = ["--rounds", ROUNDS, instructions::ROW, instructions::CALLS];
    let args = Args::parse(words, &options, USAGE)?;
    let number = |option: &str, default: usize| match args.value(option) {
        None => Ok(default),
        Some(word) => word
            .parse()
            .map_err(|_| format!("{option} {word:?} is not a number\n{USAGE}")),
    };
    if let Some(row) = args.value(instructions::ROW) {
        return instructions::repeat(row, number(instructions::CALLS, 0)?);
    }
    let part = args.file().unwrap_or_default();
    if counts {
        return instructions::table(part);
    }
    let rounds = number("--rounds", if measured { 40 } else { 1 })?;
    let mut rows = rows::all(part);
    rows.retain(|row| row.is_needed() || row.name.contains(part));
    if args.value(ROUNDS).is_some() {
        processes::answer(rows, number(ROUNDS, 1)?);
        return Ok(());
    }
    if measured {
        processes::ask(&mut rows, rounds, part)?;
    } else {
        processes::measure(&mut rows, rounds);
    }
    rows.iter_mut().for_each(rows::Row::count);
    if args.json() {
        report::json(&rows);
        return Ok(());
    }
    // a part of the rows is not the report
    report::tables(&rows, measured && part.is_empty())
}
