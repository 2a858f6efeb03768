//! A long run against a model: `soak [--minutes N] [--clients N] [--faults PER_MILLE] [--gateway
//! PROGRAM]`.
//!
//! One gateway serves clients of both eras over HTTP. It stands before servers of both eras that
//! lose, delay and fail calls, two of which give no prefix and come and go, and before one that
//! runs a process for each session, which is killed now and then. Two more gateways are their
//! clients' children and are killed, too. Each answer is held to what the servers ran: a write at
//! most once, a read never older than when it was asked, a session's notes no one else's, and a
//! call at the tool whose name it has. What the gateways hold is reported at the beginning and the
//! end. The status is 1 if a promise was not kept.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program for developers: it tells what it finds"
)]

mod channel;
mod client;
mod found;
mod gateway;
mod http;
mod names;
mod pipe;
mod programs;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use tokio::time::{Instant, sleep};

use crate::channel::{Channel, Era, era};
use crate::client::Client;
use crate::found::Found;
use crate::gateway::{Place, Wrapped, usage};
use crate::http::Http;
use crate::names::Names;
use crate::pipe::Pipes;
use crate::programs::{NOTES, RELAY};
use crate::server::Server;

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    #[arg(long, default_value_t = 16)]
    clients: u64,
    /// How many of a thousand calls a server fails
    #[arg(long, default_value_t = 10)]
    faults: u32,
    /// Default: `callward` beside this program
    #[arg(long)]
    gateway: Option<PathBuf>,
}

/// How many gateways are clients' children, and how many clients each of them has.
const WRAPPED: u64 = 2;
const CLIENTS_OF_ONE: u64 = 3;
/// How long servers, processes and gateways stay as they are.
const ROUND: Duration = Duration::from_secs(2);
/// How long after the last call descriptors and processes may take to go.
const REST: Duration = Duration::from_secs(6);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match (given.next().as_deref(), given.next()) {
        (Some(NOTES), _) => programs::serve_notes()?,
        (Some(RELAY), Some(address)) => runtime.block_on(programs::relay(&address))?,
        _ => return runtime.block_on(run(Args::parse())),
    }
    // a thread that reads standard input ends with the process only
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn run(args: Args) -> Result<ExitCode, Box<dyn Error>> {
    let this = std::env::current_exe()?;
    let directory = std::env::temp_dir().join(format!("soak-{}", std::process::id()));
    let beside = || this.with_file_name("callward");
    let program = args.gateway.unwrap_or_else(beside);
    let place = Place { program, directory };
    let found = Arc::new(Found::default());

    let mut servers = format!("[servers.notes]\ncommand = {this:?}\nargs = [{NOTES:?}]\n");
    let mut guests = Vec::new();
    for (id, era, more) in [
        ("old", Era::Legacy, ""),
        ("new", Era::Modern, "state = \"own\"\n"),
        ("plain", Era::Legacy, "prefix = false\nstate = \"own\"\n"),
        ("bare", Era::Modern, "prefix = false\n"),
    ] {
        let changes = id != "old";
        let (server, address) = Server::start(id, era, changes, args.faults, &found).await?;
        servers += &format!("\n[servers.{id}]\nurl = \"http://{address}/mcp\"\n{more}");
        guests.extend(changes.then_some(server));
    }
    let (gateway, address) = place.serve(&servers).await?;
    let always = ["notes__keep", "notes__recall", "old__keep", "old__look"];
    let names = Arc::new(Names {
        always: always.map(str::to_owned).to_vec(),
        ..Names::default()
    });
    let client_of = |channel, names: &Arc<Names>| Client {
        channel,
        names: names.clone(),
        found: found.clone(),
    };
    let mut all = Vec::new();
    for one in 0..args.clients {
        let http = Http::new(address.clone(), era(one));
        all.push(client_of(Channel::Http(http), &names));
    }

    let mut wrapped = Vec::new();
    let mut running = vec![("serve".to_owned(), gateway)];
    for one in 0..WRAPPED {
        let name = format!("piped{one}");
        // each era of clients with each era of servers
        let (client, server) = (era(one), era(one + 1));
        let (behind, address) = Server::start(&name, server, false, args.faults, &found).await?;
        let gateway = Wrapped {
            servers: format!(
                "[servers.{name}]\ncommand = {this:?}\nargs = [{RELAY:?}, {address:?}]\n"
            ),
            behind,
            pipes: Arc::new(Pipes::new(client)),
            name,
        };
        running.push((gateway.name.clone(), gateway.start(&place).await?));
        let names = Arc::new(Names::default());
        for _ in 0..CLIENTS_OF_ONE {
            all.push(client_of(Channel::Pipe(gateway.pipes.clone()), &names));
        }
        wrapped.push(gateway);
    }
    sleep(Duration::from_secs(1)).await;
    let pid = |child: &tokio::process::Child| child.id().unwrap_or(0);
    let start: Vec<_> = running.iter().map(|(_, child)| usage(pid(child))).collect();

    let end = Instant::now() + Duration::from_secs(60 * args.minutes);
    let clients: Vec<_> = all
        .into_iter()
        .map(|client| tokio::spawn(work(client, end)))
        .collect();
    let mut round = 0_usize;
    while Instant::now() < end {
        sleep(ROUND).await;
        round += 1;
        guests[fastrand::usize(..guests.len())].change();
        let at = fastrand::usize(..running.len());
        let mut below = gateway::descendants(pid(&running[at].1));
        below.retain(|pid| gateway::is_ours(*pid));
        if let Some(one) = fastrand::choice(below)
            && gateway::kill(one, "-9").await
        {
            found.kills.fetch_add(1, Ordering::Relaxed);
        }
        if round.is_multiple_of(5) {
            let one = fastrand::usize(..wrapped.len());
            let child = &mut running[1 + one].1;
            wrapped[one].restart(child, &place, &found).await?;
        }
        if round.is_multiple_of(30) {
            let calls = found.calls.load(Ordering::Relaxed);
            let (left, held) = (end - Instant::now(), usage(pid(&running[0].1)));
            eprintln!("{calls} calls, {left:?} left, {held:?}");
        }
    }
    for client in clients {
        client.await?;
    }
    sleep(REST).await;
    let mut kept = found.tell();
    for ((name, child), start) in running.iter().zip(start) {
        if !gateway::tell(name, start, usage(pid(child))) {
            eprintln!("violation: {name} has ended, or holds more than at the beginning");
            kept = false;
        }
    }
    println!("configs and logs: {}", place.directory.display());
    Ok(ExitCode::from(u8::from(!kept)))
}

/// Makes calls until the time has come.
async fn work(mut client: Client, end: Instant) {
    while Instant::now() < end {
        client.step().await;
        sleep(Duration::from_millis(fastrand::u64(..20))).await;
    }
    if let Some(http) = client.channel.with_sessions() {
        http.leave().await;
    }
}
