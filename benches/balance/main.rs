//! How well each strategy spreads calls over servers that queue, beside one that knows everything.
//!
//! `cargo bench --bench balance`, after `--` with `--json` for a line for each run, `--plots FOLDER`
//! for the pictures (default: the target directory), `--seed N` for another run of chance, `--only
//! SCENARIO` for one of them. Nothing is measured by the clock, which is paused: a seed gives the same
//! figures on every machine.
//!
//! **The world.** 10 servers, and 1,000. A server works on four calls at once, for 100 ms on average,
//! and the others queue, first come, first served. Calls come at random, whether or not earlier ones
//! were answered: 70 % of what all servers can do while they are well. They go through a
//! [`Router`](callward::router::Router) and nothing else: no repeats, no breakers, no limits. After five seconds an attempt
//! is given up; the server, which nobody tells, works on it all the same.
//!
//! **What happens.** *log-normal*: service times are log-normal with σ = 1. *bimodal*: one call of
//! ten takes twenty times as long, and nothing tells which. *two tools*: one tool takes twenty times as
//! long as the other. In all others service times are log-normal with σ = 0.5, and after a quarter of
//! the run something happens to one server of each ten: it takes ten times as long (*one slow*); fails
//! all calls within a millisecond (*one fails fast*); does that for two seconds of each four (*one
//! flaps*); or begins to exist, and takes four times as long at first, less and less for five seconds
//! (*one joins*).
//!
//! **Who is compared.** Each strategy that does something of its own among servers of one weight, in a
//! router with its defaults otherwise; *alone*, where that makes a difference: without its health, so
//! that no server is ever ejected and none starts slowly; and the oracle: it sends a call to the server
//! that will have answered it first, knowing all queues, what the call will take, and who is slow or
//! failing.
//!
//! **What is shown,** of calls from the moment on at which something happens: within what time half,
//! 99 of 100 and 999 of 1,000 were answered, where a call that failed counts as never answered; the
//! most calls and the most time at work of one server over the mean of all; calls that failed; what
//! struck servers get as a multiple of an equal share. With 10 servers a row rests on some 33,600 calls,
//! of which 336 are slower than its p99 and 34 than its p99.9; with 1,000 on 168,000, of which 168 are
//! slower than its p99.9.
//!
//! All of it takes a minute or two of a processor's time, spread over as many as there are.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use callward_testkit::bench::{self, progress};
use parking_lot::Mutex;

use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Scenario, Size};

mod drive;
mod figures;
mod plot;
mod policies;
mod report;
mod world;

const USAGE: &str = "usage: cargo bench --bench balance -- [--json] [--plots FOLDER] [--seed N] \
                     [--only SCENARIO]";
const SEED: u64 = 2026;

fn main() -> ExitCode {
    bench::main(run)
}

fn run() -> Result<(), String> {
    let args = bench::args(&["--plots", "--only"], USAGE)?;
    let scenarios = match args.value("--only") {
        None => SCENARIOS.to_vec(),
        Some(name) => {
            let mut known = SCENARIOS.into_iter();
            let named = known.find(|scenario| scenario.name() == name);
            vec![named.ok_or_else(|| unknown(name))?]
        }
    };
    let found = all(&scenarios, bench::seed(&args, SEED, USAGE)?);
    if args.json() {
        for figures in &found {
            let line = serde_json::to_string(figures).map_err(|fault| fault.to_string())?;
            println!("{line}");
        }
    } else {
        println!("{}", report::tables(&found, &scenarios, &SIZES));
    }
    for scenario in scenarios {
        let name = format!("balance-{}.svg", scenario.name().replace(' ', "-"));
        let file = args.value("--plots").map_or_else(
            || bench::beside_builds(&name),
            |folder| PathBuf::from(folder).join(&name),
        );
        bench::write(&file, scenario.name(), &plot::svg(scenario, &SIZES, &found))?;
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let known = SCENARIOS.map(Scenario::name).join(", ");
    format!("--only {name:?}: there are {known}\n{USAGE}")
}

/// Runs every policy through the scenarios at every size, as many at once as there are processors:
/// each run has a clock and a chance of its own.
fn all(scenarios: &[Scenario], seed: u64) -> Vec<Figures> {
    let mut runs = Vec::new();
    for scenario in scenarios {
        for size in &SIZES {
            let policies = Policy::ALL.into_iter();
            runs.extend(policies.map(|policy| (*scenario, size, policy)));
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((place, run)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            runs.get(place).map(|run| (place, *run))
        } {
            let (scenario, size, policy) = run;
            let figures = drive::run(size, scenario, policy, seed);
            let mut found = found.lock();
            found.push((place, figures));
            progress(found.len() as f64 / runs.len() as f64);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut found = found.into_inner();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, figures)| figures).collect()
}

const SCENARIOS: [Scenario; 7] = [
    Scenario::LogNormal,
    Scenario::Bimodal,
    Scenario::TwoTools,
    Scenario::OneSlow,
    Scenario::OneFails,
    Scenario::OneFlaps,
    Scenario::OneJoins,
];

const SIZES: [Size; 2] = [
    Size {
        servers: 10,
        workers: 4,
        load: 0.7,
        length: Duration::from_secs(160),
    },
    Size {
        servers: 1000,
        workers: 4,
        load: 0.7,
        length: Duration::from_secs(8),
    },
];
