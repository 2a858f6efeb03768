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
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints"
)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate_testkit::args::Args;

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
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    // cargo itself passes `--bench`
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let args = Args::parse(words, &["--plot", "--seed"], USAGE)?;
    if let Some(word) = args.file() {
        return Err(format!("{word:?} is not understood\n{USAGE}"));
    }
    let seed = match args.value("--seed") {
        None => SEED,
        Some(seed) => seed
            .parse()
            .map_err(|_| format!("--seed {seed:?} is no whole number\n{USAGE}"))?,
    };
    let found = all(seed);
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
        .map_or_else(default_plot, PathBuf::from);
    std::fs::write(&file, plot::svg(&SIZE, &found))
        .map_err(|fault| format!("{}: {fault}", file.display()))?;
    eprintln!("goodput over time: {}", file.display());
    Ok(())
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
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    found
}

fn progress(share: f64) {
    if std::io::stderr().is_terminal() {
        let filled = "#".repeat((share * 40.0) as usize);
        eprint!("\r[{filled:40}] {:3.0} %", share * 100.0);
        // what cannot be shown is not missed
        let _ = std::io::stderr().flush();
    }
}

/// Beside the other things that cargo makes.
fn default_plot() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    target.join("metastable.svg")
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
