//! A long run against a model: `soak [--minutes N] [--clients N] [--faults PER_MILLE] [--gateway PROGRAM]`.
//!
//! A gateway stands before a server that loses, delays and fails calls, and before one that runs a process
//! for each session, which is killed now and then. Clients of both eras make random calls and hang up. Each
//! answer is held to what the servers ran: a write at most once, a read never older than when it was asked,
//! a session's notes nobody else's, and each tool under its name. What the gateway holds is told at the
//! beginning and the end. The status is 1 if a promise was not kept.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program for developers: it tells what it finds"
)]

mod client;
mod process;
mod server;
mod wire;
mod world;

use std::error::Error;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use tollgate_testkit::args::Args;

use crate::client::{Client, Found};
use crate::process::Usage;

/// Makes this program a server of notes.
const NOTES: &str = "--serve-notes";
const USAGE: &str =
    "usage: soak [--minutes N] [--clients N] [--faults PER_MILLE] [--gateway PROGRAM]";

/// How long after the last call descriptors and processes may take to go.
const REST: Duration = Duration::from_secs(6);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(NOTES) {
        server::serve_notes()?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = ["--clients", "--faults", "--gateway", "--minutes"];
    let args = Args::parse(std::env::args().skip(1), &options, USAGE)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run(&args))
}

async fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let number = |option: &str, default: u64| {
        args.value(option).map_or(Ok(default), |value| {
            value
                .parse()
                .map_err(|_| format!("{option} {value:?} is not a number\n{USAGE}"))
        })
    };
    let (minutes, clients) = (number("--minutes", 10)?, number("--clients", 16)?);
    let faults = u32::try_from(number("--faults", 10)?)?;
    let found = Arc::new(Found::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let registers = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(server::serve(listener, found.world.clone(), faults));
    let (gateway, address) = gateway(args.value("--gateway"), &registers).await?;
    let pid = gateway.id().ok_or("the gateway has ended")?;
    sleep(Duration::from_secs(1)).await;
    let start = Usage::of(pid);

    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut running = Vec::new();
    for one in 0..clients {
        let (address, found) = (address.clone(), found.clone());
        running.push(tokio::spawn(async move {
            let mut client = Client::new(address, one, one % 2 == 0, found);
            while Instant::now() < end {
                client.step().await;
                sleep(Duration::from_millis(fastrand::u64(..20))).await;
            }
            client.leave().await;
        }));
    }
    let mut kills = 0_u64;
    while Instant::now() < end {
        sleep(Duration::from_secs(2)).await;
        let notes = process::descendants(pid);
        let notes: Vec<u32> = notes
            .into_iter()
            .filter(|pid| process::serves_notes(*pid))
            .collect();
        if !notes.is_empty() {
            let one = notes[fastrand::usize(..notes.len())];
            let killed = Command::new("kill")
                .args(["-9", &one.to_string()])
                .status()
                .await;
            kills += u64::from(killed.is_ok_and(|status| status.success()));
        }
        if kills % 30 == 1 {
            let calls = found.calls.load(Ordering::Relaxed);
            eprintln!(
                "{calls} calls, {:?} left, {:?}",
                end - Instant::now(),
                Usage::of(pid)
            );
        }
    }
    for client in running {
        client.await?;
    }
    sleep(REST).await;
    Ok(tell(&found, kills, start, Usage::of(pid)))
}

/// Starts the gateway; returns the address it listens on.
async fn gateway(
    program: Option<&str>,
    registers: &str,
) -> Result<(Child, String), Box<dyn Error>> {
    let this = std::env::current_exe()?;
    let program = program.map_or_else(|| this.with_file_name("tollgate"), Into::into);
    let state = std::env::temp_dir().join(format!("soak-{}", std::process::id()));
    std::fs::create_dir_all(&state)?;
    let config = state.join("soak.toml");
    let text = format!(
        "[servers.registers]\nurl = {registers:?}\n\n\
         [servers.notes]\ncommand = {this:?}\nargs = [{NOTES:?}]\n\n\
         [cache]\nfreshness = \"fixed\"\n\n\
         # what fails is the point: nothing is spared\n\
         [breaker]\nfailures = 1000000\n\n[breaker.server]\nfailures = 1000000\n\n\
         [router.health]\nfaults = 0\noutlier = 0\n"
    );
    std::fs::write(&config, text)?;
    let mut child = Command::new(&program)
        .args(["serve", "--json", "--http", "127.0.0.1:0", "--config"])
        .arg(&config)
        .env("TOLLGATE_STATE_DIR", &state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            format!(
                "{}: {error}; build it, or name it with --gateway",
                program.display()
            )
        })?;
    let stdout = child.stdout.take().ok_or("no standard output")?;
    let line = BufReader::new(stdout).lines().next_line().await?;
    let listening: Value = serde_json::from_str(&line.ok_or("the gateway has ended")?)?;
    let url = listening["listening"].as_str().unwrap_or_default();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    Ok((child, address.to_owned()))
}

fn tell(found: &Found, kills: u64, start: Usage, end: Usage) -> ExitCode {
    let (reads, writes, twice) = found.world.totals();
    let violations = found.violations.lock();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    println!("calls           {:>10}", count(&found.calls));
    println!("  failed        {:>10}", count(&found.failed));
    println!("  hung up       {:>10}", count(&found.hung_up));
    println!("reads made      {:>10}", count(&found.looks));
    println!("reads run       {reads:>10}");
    println!("writes run      {writes:>10}");
    println!("processes killed{kills:>10}");
    println!("writes run twice{twice:>10}");
    println!("violations      {:>10}", violations.len());
    println!("                     start        end");
    let row = |what: &str, start: u64, end: u64| println!("{what:<16}{start:>10} {end:>10}");
    row("memory, KiB", start.kilobytes, end.kilobytes);
    row(
        "descriptors",
        start.descriptors as u64,
        end.descriptors as u64,
    );
    row("threads", start.threads, end.threads);
    row("processes", start.children as u64, end.children as u64);
    match violations.is_empty() && twice == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
