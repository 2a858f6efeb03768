//! What an outage leaves behind: servers that stay busy with calls which nobody waits for any more,
//! because every failure was answered with more calls.
//!
//! `cargo bench --bench metastable`, after `--` with `--json` for a line for each run, `--plot FILE`
//! for the picture (default: `metastable.svg` in the target directory), `--seed N` for another run
//! of chance. Nothing is measured by the clock, which is paused: a seed gives the same figures on
//! every machine.
//!
//! **The world.** 100 servers in 20 replica sets. A server works on four calls at once, for
//! 100 ms on average, and the others queue; it works on calls that were given up, too. Four servers,
//! each of another set, stand on one machine, which needs 5 ms for each attempt that arrives,
//! whatever becomes of it. 10,000 clients call at random, 70 % of what the servers can do, whether
//! or not earlier calls were answered, and wait between 5 and 20 s. Half of them say how long.
//!
//! **What happens.** After 20 s, for 45 s: in every second set three of five servers become ten
//! times as slow (30 of 100). Or: all servers of one set fail; three refuse connections, two accept
//! calls and never answer. Then all is as before, but for what has piled up.
//!
//! **Who is compared.** Calls tried once; calls tried up to three times, at once; the stack of this
//! workspace with its defaults. All choose servers by the fewest calls in flight and give up an
//! attempt after 5 s, by the plan of the tool. Nobody has a cache.
//!
//! **What is shown.** Of the sets that are struck: the share of calls that were answered, attempts
//! over calls, and how long after the outage nine of ten calls are answered again, for good. Of the
//! other sets: what the outage adds to the answer time that 99 in 100 calls do not exceed, against
//! the same run without an outage; neighbours share a machine with what is struck.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use callward_testkit::bench::{self, progress};

use crate::clients::Run;
use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Outage, Size};

mod clients;
mod figures;
mod plot;
mod policies;
mod report;
mod world;

const USAGE: &str = "usage: cargo bench --bench metastable -- [--json] [--plot FILE] [--seed N]";
const SEED: u64 = 2026;
const POLICIES: [Policy; 3] = [Policy::NoRetry, Policy::Naive, Policy::Ours];

fn main() -> ExitCode {
    bench::main(run)
}

fn run() -> Result<(), String> {
    let args = bench::args(&["--plot"], USAGE)?;
    let found = all(bench::seed(&args, SEED, USAGE)?);
    for figures in &found {
        if args.json() {
            println!(
                "{}",
                serde_json::to_string(figures).map_err(|fault| fault.to_string())?
            );
        }
    }
    if !args.json() {
        println!("{}", report::tables(&found));
    }
    let file = args
        .value("--plot")
        .map_or_else(|| bench::beside_builds("metastable.svg"), PathBuf::from);
    bench::write(&file, "goodput over time", &plot::svg(&SIZE, &found))
}

/// Runs every policy through every outage, and through none.
fn all(seed: u64) -> Vec<Figures> {
    let outages = [None, Some(Outage::Partial), Some(Outage::Total)];
    let runs = outages.len() * POLICIES.len();
    let mut found = Vec::new();
    let mut done = 0;
    for policy in POLICIES {
        for outage in outages {
            let run = Run::new(&SIZE, outage, policy, seed, &mut |share| {
                progress((done as f64 + share) / runs as f64);
            });
            done += 1;
            match outage {
                Some(outage) => found.push(Figures::of(&run, outage)),
                None => found.extend(Outage::ALL.map(|outage| Figures::of(&run, outage))),
            }
        }
    }
    progress(1.0);
    found
}

const SIZE: Size = Size {
    sets: 20,
    replicas: 5,
    workers: 4,
    clients: 10_000,
    load: 0.7,
    quiet: Duration::from_secs(20),
    outage: Duration::from_secs(45),
    after: Duration::from_secs(105),
};
