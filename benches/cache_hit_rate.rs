//! How often the cache answers, next to other policies, and what mixing in writes costs it.
//!
//! `cargo bench --bench cache_hit_rate [-- FILE... --json --plot DIRECTORY]`. Requests made from a
//! seed come first; each FILE of keys (one a line, a size after it or none, gzip or not) is replayed
//! too, and so are those that the variable `CALLWARD_BENCH_KEYS` names, with `:` between them. At
//! last, reads and writes mixed. `--json` prints a line for each figure instead of tables; `--plot`
//! draws hit rate over capacity, a file for each workload.
//!
//! Nothing is measured by the clock: the figures of one seed are the same on every machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints, and may panic"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use callward_replay::report::{Cell, Grid, Mark, percent};
use callward_replay::{Capacity, Comparison, KeyTrace, Mix, Plot, Policy, Workload};
use serde_json::json;

const SEED: u64 = 2026;
const REQUESTS: usize = 200_000;
const CAPACITIES: [u64; 5] = [100, 300, 1_000, 3_000, 10_000];
const CALLS: usize = 20_000;
const WRITES: [f64; 4] = [0.0, 0.01, 0.1, 0.3];
const SERVERS: [u32; 2] = [1, 8];

/// What to replay besides, and how to tell it.
#[derive(Default)]
struct Options {
    files: Vec<PathBuf>,
    json: bool,
    plots: Option<PathBuf>,
}

const USAGE: &str =
    "usage: cargo bench --bench cache_hit_rate -- [--json] [--plot DIRECTORY] [FILE...]";

impl Options {
    fn read() -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.json = true,
                "--plot" => {
                    let directory = words.next();
                    let missing = || format!("--plot needs a directory\n{USAGE}");
                    options.plots = Some(directory.ok_or_else(missing)?.into());
                }
                // cargo itself passes it
                "--bench" => {}
                flag if flag.starts_with("--") => {
                    return Err(format!("{flag:?} is not understood\n{USAGE}"));
                }
                file => options.files.push(file.into()),
            }
        }
        let named = std::env::var_os("CALLWARD_BENCH_KEYS").unwrap_or_default();
        options.files.extend(std::env::split_paths(&named));
        options.files.retain(|file| !file.as_os_str().is_empty());
        Ok(options)
    }
}

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
    let options = Options::read()?;
    // read before anything is computed, so that a wrong name costs no time
    let mut traces = Vec::new();
    for file in &options.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        traces.push((
            name,
            KeyTrace::read(file).map_err(|fault| fault.to_string())?,
        ));
    }
    let capacities = CAPACITIES.map(Capacity::Entries);
    for workload in Workload::ALL {
        let trace = workload.keys(REQUESTS, SEED);
        keys(&workload.name(), &trace, &capacities, &options);
    }
    for (name, trace) in &traces {
        keys(name, trace, &trace.capacities(), &options);
    }
    mixes(&options);
    Ok(())
}

fn keys(name: &str, trace: &KeyTrace, capacities: &[Capacity], options: &Options) {
    let found = Comparison::of(trace, capacities, &Policy::ALL, &|_, _| ()).unwrap();
    if options.json {
        for figures in &found.figures {
            let mut line = serde_json::to_value(figures).unwrap();
            let line = line.as_object_mut().unwrap();
            line.insert("workload".into(), name.into());
            println!("{}", json!(line));
        }
    } else {
        println!(
            "{name}: {} requests for {} keys; hit rate in per cent\n{}",
            found.requests,
            found.distinct,
            found.grid()
        );
        for policy in [Policy::Lru, Policy::Belady] {
            if let Some(gap) = found.gap(policy) {
                println!("against {policy}: {gap}");
            }
        }
        println!();
    }
    if let Some(directory) = &options.plots {
        plot(directory, name, &found);
    }
}

fn plot(directory: &Path, name: &str, found: &Comparison) {
    std::fs::create_dir_all(directory).unwrap();
    let file = directory.join(format!("{name}.svg"));
    std::fs::write(&file, Plot::new(name, found).to_string()).unwrap();
}

fn mixes(options: &Options) {
    let headings = [
        "mix",
        "policy",
        "reads",
        "hit rate",
        "stale",
        "writes swallowed",
    ];
    let mut grid = Grid::new(&headings);
    for (servers, writes) in SERVERS
        .into_iter()
        .flat_map(|n| WRITES.map(|writes| (n, writes)))
    {
        let mix = Mix::new(writes, servers);
        for figures in mix.replay(CALLS, SEED).unwrap() {
            if options.json {
                let mut line = serde_json::to_value(figures).unwrap();
                let line = line.as_object_mut().unwrap();
                line.insert("workload".into(), mix.to_string().into());
                println!("{}", json!(line));
            }
            let fault = |count: u64| {
                let mark = if count > 0 { Mark::Bad } else { Mark::Plain };
                Cell::marked(count, mark)
            };
            grid.row(vec![
                Cell::plain(mix),
                Cell::plain(figures.policy),
                Cell::plain(figures.reads),
                Cell::plain(percent(figures.hit_rate)),
                fault(figures.stale),
                fault(figures.swallowed),
            ]);
        }
    }
    if !options.json {
        println!("reads and writes, {CALLS} calls\n{grid}");
    }
}
