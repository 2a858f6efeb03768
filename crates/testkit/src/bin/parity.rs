//! Compares our answers with NeuroLink's: `parity [--json] [FILE]`.
//!
//! FILE holds one recorded call a line, `{"fn", "input", "output"}`. By default it is the recording
//! that is beside the checkout, or the cases of this crate where there is none. Fails if any case
//! does.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use callward_testkit::{args::Args, parity::Parity};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse(
        std::env::args().skip(1),
        &[],
        "usage: parity [--json] [FILE]",
    )?;
    let (_, text) = args.read("parity/neurolink-dev.jsonl", "neurolink-cases.jsonl")?;
    let parity = Parity::run(&text);
    let mut out = std::io::stdout().lock();
    if args.json() {
        writeln!(out, "{}", serde_json::to_string(&parity)?)?;
    } else {
        writeln!(out, "{parity}")?;
    }
    Ok(if parity.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
