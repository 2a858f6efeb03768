//! Hits and stale answers of each lifetime, on recorded agent sessions made into a day of traffic.
//!
//! `cargo bench --bench freshness [-- FILE... --seed N --times N --outside N]`. Without a FILE, the
//! sample in `docs/examples` is replayed. `docs/benchmarks/freshness.md` documents what is recorded
//! and what is modelled. The figures of one seed are the same on every machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use callward::cache::{BucketStatus, EvidenceStatus};
use callward_replay::report::{Grid, percent, share};
use callward_replay::trace::Calls;
use clap::Parser;

use crate::day::{Fault, Figures, Freshness, Model, Traffic, measure};

#[path = "../crates/replay/tests/replay/day/mod.rs"]
mod day;

/// Replays recorded sessions as a day of traffic
#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 2026)]
    seed: u64,
    /// How often each recorded session happens in a day
    #[arg(long, default_value_t = 1)]
    times: u32,
    /// Outside changes per hour of each call with several recorded answers
    #[arg(long, default_value_t = 1.0)]
    outside: f64,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
    /// Default: the sample in `docs/examples`
    files: Vec<PathBuf>,
}

/// The number of tools whose evidence is shown.
const TOOLS: usize = 8;

const LIFETIMES: [(&str, Freshness); 5] = [
    (
        "learned, no evidence",
        Freshness::Learned { days_before: 0 },
    ),
    (
        "learned, after a day",
        Freshness::Learned { days_before: 1 },
    ),
    ("fixed 300 s", Freshness::Fixed(Duration::from_secs(300))),
    ("fixed 5 s", Freshness::Fixed(Duration::from_secs(5))),
    ("none", Freshness::Disabled),
];

fn main() -> Result<(), Fault> {
    let args = Args::parse();
    let model = Model {
        seed: args.seed,
        times: args.times,
        outside: args.outside,
    };
    let mut files = args.files;
    if files.is_empty() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        files.push(root.join("docs/examples/orders.jsonl"));
    }
    for file in files {
        table(&file, &model)?;
    }
    Ok(())
}

fn table(file: &Path, model: &Model) -> Result<(), Fault> {
    let traffic = Traffic::read(Calls::open(file)?)?;
    let mut rows = Vec::new();
    for (name, freshness) in LIFETIMES {
        rows.push((name, measure(&traffic, model, freshness)?));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "{name}: {} calls in {} sessions, each {} times a day",
        traffic.sessions.iter().map(Vec::len).sum::<usize>(),
        traffic.sessions.len(),
        model.times
    );
    println!("{}", grid(&rows));
    let tools = rows.iter().find(|(_, figures)| !figures.tools.is_empty());
    if let Some((_, figures)) = tools {
        println!("evidence after a day: equal weight (different of repeats) by gap");
        println!("{}", evidence_grid(&figures.tools));
    }
    Ok(())
}

/// Returns a row for each lifetime.
fn grid(rows: &[(&str, Figures)]) -> Grid {
    let mut grid = Grid::new(&[
        "lifetime",
        "calls",
        "executions",
        "hits",
        "of calls",
        "stale",
        "of hits",
        "oldest",
    ]);
    for (name, figures) in rows {
        grid.rows.push(vec![
            name.to_string(),
            figures.calls.to_string(),
            figures.executions.to_string(),
            figures.hits.to_string(),
            percent(share(figures.hits, figures.calls)),
            figures.stale.to_string(),
            percent(share(figures.stale, figures.hits)),
            format!("{:.1} s", figures.oldest.as_secs_f64()),
        ]);
    }
    grid
}

/// Returns the evidence of the tools with the most repeats: in each bucket
/// `equal weight (different of repeats)`.
fn evidence_grid(tools: &[(String, EvidenceStatus)]) -> Grid {
    let mut grid = Grid::new(&[
        "tool",
        "to 1 s",
        "to 3 s",
        "to 10 s",
        "to 30 s",
        "to 100 s",
        "to 300 s",
        "needed",
        "allowed",
        "without empty",
        "longest alone",
    ]);
    let repeats = |status: &EvidenceStatus| -> u64 {
        let buckets = status.buckets.iter();
        buckets.map(|bucket| bucket.repeats).sum()
    };
    let mut tools: Vec<_> = tools.iter().filter(|tool| repeats(&tool.1) > 0).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(repeats(&tool.1)));
    for (name, status) in tools.into_iter().take(TOOLS) {
        let buckets = &status.buckets;
        let mut cells = vec![name.to_string()];
        cells.extend(buckets.iter().map(|bucket| {
            format!(
                "{:.0} ({} of {})",
                bucket.equal_weight, bucket.different, bucket.repeats
            )
        }));
        let needed = status.needed.unwrap_or(f64::INFINITY);
        cells.push(format!("{needed:.0}"));
        let observed = buckets.iter().filter(|bucket| bucket.repeats > 0);
        // the lifetime if buckets without observations did not count
        let without_empty = observed.take_while(|bucket| bucket.passes).last();
        // the longest bucket that passes by itself
        let alone = buckets.iter().rfind(|bucket| bucket.passes);
        let edge = |bucket: Option<&BucketStatus>| bucket.map_or(0, |bucket| bucket.up_to_s.into());
        for seconds in [status.allowed.as_secs(), edge(without_empty), edge(alone)] {
            cells.push(format!("{seconds} s"));
        }
        grid.rows.push(cells);
    }
    grid
}
