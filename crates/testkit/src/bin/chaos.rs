//! An MCP server on standard input and output that fails as instructed.
//!
//! What it executes is written into the ledger at once, so that it outlives the process. A fault
//! that is its death ends it with status 1.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use callward_testkit::calls;
use callward_testkit::chaos::{Chaos, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::pipe::{Ended, PipeServer};
use clap::Parser;
use tokio::io::{stdin, stdout};

/// Serves MCP on standard input and output, and fails as instructed.
#[derive(Parser)]
struct Args {
    /// Where executions are written
    #[arg(long)]
    ledger: PathBuf,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many of a thousand exchanges fail
    #[arg(long, default_value_t = 300)]
    share: u32,
    /// How many times faster than real delays
    #[arg(long, default_value_t = 1)]
    hasten: u32,
    #[arg(long, default_value = "legacy", value_parser = ["legacy", "modern"])]
    era: String,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let ledger = Ledger::in_file(&args.ledger)?;
    let chaos = Chaos::everything(args.seed)
        .with_share(args.share)
        .hastened(args.hasten);
    let era = match args.era.as_str() {
        "modern" => Era::Modern,
        _ => Era::Legacy,
    };
    // each life draws its own breaks, or one that begins with a break would never get further
    let life = u64::from(std::process::id());
    let server = PipeServer::new(era, &calls::tools(), chaos, ledger, life);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(server.serve(stdin(), stdout()))?;
    // the thread that reads standard input cannot be stopped, and need not be waited for
    runtime.shutdown_background();
    Ok(match ended {
        Ended::Closed => ExitCode::SUCCESS,
        Ended::Died => ExitCode::FAILURE,
    })
}
