//! Errors and progress of simulating benches.
#![expect(clippy::print_stderr, reason = "a benchmark shows its progress")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

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
