//! Metastable failure: retries that keep servers busy with abandoned calls after an outage.
//!
//! `cargo bench --bench metastable -- [--json] [--seed N]`. The clock is paused: a seed gives the
//! same figures on every machine.
//!
//! **Servers.** 100 in 20 replica sets. Each runs four calls concurrently, 100 ms on average, and
//! queues the others, abandoned ones included. Four servers of different sets share a machine,
//! which needs 5 ms for each attempt. 10,000 clients send 70 % of the capacity, open loop, with
//! deadlines of 5 to 20 s; half of them state the deadline.
//!
//! **Outages.** From 20 s to 65 s. *Partial*: in every second set three of five servers are ten
//! times as slow. *Total*: in one set three servers refuse connections and two never answer.
//!
//! **Policies.** No retry; up to three attempts without backoff; this stack with its defaults. All
//! choose the server with the fewest calls in flight and end an attempt after 5 s. None has a
//! cache.
//!
//! **Figures.** Affected sets: the share of answered calls, attempts per call, and the time until
//! nine of ten calls are answered again. Other sets: the increase of the p99 against a run without
//! an outage; neighbours share a machine with an affected server.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints"
)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and its numbers are small"
)]

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Parser;

use crate::clients::Run;
use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Outage, Size};

mod clients;
mod figures;
mod policies;
mod report;
mod world;

/// Simulates outages: `cargo bench --bench metastable -- [--json] [--seed N]`
#[derive(Parser)]
struct Args {
    #[arg(long)]
    json: bool,
    #[arg(long, default_value_t = 2026)]
    seed: u64,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

const POLICIES: [Policy; 3] = [Policy::NoRetry, Policy::Naive, Policy::Ours];

fn main() -> Result<(), serde_json::Error> {
    let args = Args::parse();
    let found = all(args.seed);
    if !args.json {
        println!("{}", report::tables(&found));
        return Ok(());
    }
    for figures in &found {
        println!("{}", serde_json::to_string(figures)?);
    }
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

/// Shows the finished share of the work on a terminal; 1 ends the line.
fn progress(share: f64) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let filled = "#".repeat((share.clamp(0.0, 1.0) * 40.0) as usize);
    eprint!("\r[{filled:40}] {:3.0} %", share * 100.0);
    if share >= 1.0 {
        eprintln!();
    }
    // a failure does no harm
    let _ = std::io::stderr().flush();
}
