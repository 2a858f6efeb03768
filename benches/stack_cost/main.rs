//! What the whole stack costs: a cached call beside the least that any cache must do, an uncached
//! one beside the service without a stack, and the share of each layer.
//!
//! `cargo bench --features otlp --bench stack_cost`; after `--` with `--rounds N` (40), with
//! `--json` for a line for each row, with `--instructions` to count instructions under `valgrind`,
//! and with a part of a name for the rows whose name has it.
//!
//! Tools of this process answer at once with some 230 bytes; calls have 200 bytes of arguments. The
//! stack has its defaults, no subscriber and no metrics. *Prepared* calls are made before the clock
//! starts; *by name*, looking up the tool and making the call count. *Exporting*, a call span with
//! an attempt span in it is sent to a collector in this process.
//!
//! **The floor** of a cached call is one keyed hash of the arguments (SipHash-1-3, 128 bits) and
//! one `get` of a bare `moka` cache. That of a read whose answer is kept is the floor of a cached
//! call, a call past the cache, and one `insert` into a full `moka` cache.
//!
//! **Shares.** The layers are put around the service one at a time, innermost first; the difference
//! to the row before is the layer's. Such differences are good to some ten nanoseconds.
//!
//! **Rounds.** All rows take turns, in sixteen processes. A round warms up with all distinct calls
//! and times eight runs of 256 calls. Shown is the median run, in nanoseconds a call, and what a
//! call allocates. The tables are left in `target/bench-reports/stack_cost.md`.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use clap::Parser;

mod calls;
mod instructions;
mod layers;
mod measure;
mod peer;
mod processes;
mod report;
mod rows;
mod telemetry;

/// Measures what each layer adds to a call
#[derive(Parser)]
struct Args {
    #[arg(long)]
    json: bool,
    /// Default: 40
    #[arg(long)]
    rounds: Option<usize>,
    /// Count instructions under `valgrind` in place of times
    #[arg(long)]
    instructions: bool,
    /// Passed by cargo; `cargo test --benches` does not: one round shows that it runs
    #[arg(long, hide = true)]
    bench: bool,
    /// Measure in this process, for the one that started it
    #[arg(long, hide = true)]
    rounds_here: Option<usize>,
    /// Do one row this many times, and print nothing: for counters outside of the process
    #[arg(long, hide = true, requires = "calls")]
    row: Option<String>,
    #[arg(long, hide = true)]
    calls: Option<usize>,
    /// Only rows whose name has this part
    #[arg(default_value = "")]
    part: String,
}

fn main() -> Result<(), String> {
    let args = &Args::parse();
    if let (Some(row), Some(calls)) = (&args.row, args.calls) {
        return instructions::repeat(row, calls);
    }
    let (measured, part) = (args.bench, args.part.as_str());
    if args.instructions {
        return instructions::table(part);
    }
    let rounds = args.rounds.unwrap_or(if measured { 40 } else { 1 });
    let mut rows = rows::all(part);
    rows.retain(|row| row.is_needed() || row.name.contains(part));
    if let Some(rounds) = args.rounds_here {
        processes::answer(rows, rounds);
        return Ok(());
    }
    if measured {
        processes::ask(&mut rows, rounds, part)?;
    } else {
        processes::measure(&mut rows, rounds);
    }
    rows.iter_mut().for_each(rows::Row::count);
    if args.json {
        report::json(&rows);
        return Ok(());
    }
    // a part of the rows is not the report
    report::tables(&rows, measured && part.is_empty())
}
