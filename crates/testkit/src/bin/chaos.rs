//! An MCP server on standard input and output that fails as instructed:
//! `chaos --ledger FILE [--seed N] [--share PER_MILLE] [--hasten TIMES] [--era legacy|modern]`.
//!
//! What it executes is written into the ledger at once, so that it outlives the process. A fault
//! that is its death ends it with status 1.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use callward_testkit::args::Args;
use callward_testkit::calls;
use callward_testkit::chaos::{Chaos, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::pipe::{Ended, PipeServer};
use tokio::io::{stdin, stdout};

const USAGE: &str = "usage: chaos --ledger FILE [--seed N] [--share PER_MILLE] [--hasten TIMES] [--era legacy|modern]";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = ["--era", "--hasten", "--ledger", "--seed", "--share"];
    let args = Args::parse(std::env::args().skip(1), &options, USAGE)?;
    let ledger = args.value("--ledger").ok_or(USAGE)?;
    let ledger = Ledger::in_file(Path::new(ledger))?;
    let chaos = Chaos::everything(args.number("--seed", 0)?)
        .with_share(args.number("--share", 300)?)
        .hastened(args.number("--hasten", 1)?);
    let era = match args.value("--era") {
        None | Some("legacy") => Era::Legacy,
        Some("modern") => Era::Modern,
        Some(_) => return Err(USAGE.into()),
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
