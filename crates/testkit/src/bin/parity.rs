//! Compares our answers with NeuroLink's. Fails if any case does.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use callward_testkit::{parity::Parity, recorded};
use clap::Parser;

/// Compares our answers with those of NeuroLink
#[derive(Parser)]
struct Args {
    #[arg(long)]
    json: bool,
    /// A recorded call a line, `{"fn", "input", "output"}`. Default: the recording beside the
    /// checkout, or the cases of this crate where there is none
    file: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let shared = "parity/neurolink-dev.jsonl";
    let (_, text) = recorded::read(args.file, shared, "neurolink-cases.jsonl")?;
    let parity = Parity::run(&text);
    let mut out = std::io::stdout().lock();
    if args.json {
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
