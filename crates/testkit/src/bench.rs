//! Command line and progress of simulating benches.
#![expect(clippy::print_stderr, reason = "a benchmark shows its progress")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use crate::args::Args;

/// Runs a bench. An error is printed, with the exit code 2.
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
/// The problem, and `usage`.
pub fn args(options: &[&str], usage: &str) -> Result<Args, String> {
    // cargo itself passes `--bench`
    let words = std::env::args().skip(1).filter(|word| word != "--bench");
    let options: Vec<_> = options.iter().copied().chain(["--seed"]).collect();
    let args = Args::parse(words, &options, usage)?;
    match args.file() {
        Some(word) => Err(format!("{word:?} is not an option\n{usage}")),
        None => Ok(args),
    }
}

/// Shows the finished share of the work on a terminal; 1 ends the line.
pub fn progress(share: f64) {
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
