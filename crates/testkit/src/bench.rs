//! What the benches that simulate share: their command line, their progress, where their pictures go.
#![expect(clippy::print_stderr, reason = "a benchmark tells how far it is")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use crate::args::Args;

/// Turns what `run` found into the end of a program: a fault is told, and the exit code is 2.
pub fn main(run: impl FnOnce() -> Result<(), String>) -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(2)
        }
    }
}

/// Reads the command line of a bench that reads no file: `--json`, `--seed`, and `options`.
///
/// # Errors
///
/// What is not understood, and `usage`.
pub fn args(options: &[&str], usage: &str) -> Result<Args, String> {
    // cargo itself passes `--bench`
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let options: Vec<_> = options.iter().copied().chain(["--seed"]).collect();
    let args = Args::parse(words, &options, usage)?;
    match args.file() {
        Some(word) => Err(format!("{word:?} is not understood\n{usage}")),
        None => Ok(args),
    }
}

/// Returns what `--seed` says, or `default`.
///
/// # Errors
///
/// What is no whole number, and `usage`.
pub fn seed(args: &Args, default: u64, usage: &str) -> Result<u64, String> {
    args.value("--seed").map_or(Ok(default), |seed| {
        seed.parse()
            .map_err(|_| format!("--seed {seed:?} is no whole number\n{usage}"))
    })
}

/// Shows on a terminal which share of the work is done; 1 ends the line.
pub fn progress(share: f64) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let filled = "#".repeat((share.clamp(0.0, 1.0) * 40.0) as usize);
    eprint!("\r[{filled:40}] {:3.0} %", share * 100.0);
    if share >= 1.0 {
        eprintln!();
    }
    // what cannot be shown is not missed
    let _ = std::io::stderr().flush();
}
