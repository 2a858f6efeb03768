//! Never twice over real sockets and pipes: servers that break off at any byte, die and come back,
//! behind the client that finds them again.
//!
//! The clock is the real one, so nothing is asserted about time; a limit ends what hangs.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper fails the test, and says how it went"
)]

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::{Server, Stack};
use callward_mcp::client::{CommandSpec, HttpSpec, Target, Upstream, UpstreamOptions};
use callward_testkit::calls;
use callward_testkit::chaos::{Chaos, Ledger};
use callward_testkit::hostile::Era;
use callward_testkit::hostile::http::HttpServer;
use callward_testkit::truth::{CallerReply, Sort, Tally, judge};

/// How long a run may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(240);
const CALLS: u64 = 5_000;
const CLIENTS: u64 = 32;
/// Minutes of a fault are milliseconds here.
const HASTE: u32 = 2_000;

async fn stack(upstreams: &[Upstream]) -> Stack {
    // a breaker would spare a sick server, and here it shall have its calls
    let mut breaker = BreakerConfig::default();
    breaker.failures = 1_000_000;
    let mut builder = Stack::builder()
        .breaker(breaker)
        .server_breaker(breaker)
        .call_deadline(Duration::from_secs(1));
    for upstream in upstreams {
        builder = builder.server(
            Server::new(upstream.clone())
                .in_set("set".parse().unwrap())
                .refine_tool("tabs".parse().unwrap(), calls::tabs_that_read()),
        );
    }
    builder.build().await.unwrap()
}

/// Makes the calls of one client, one after the other.
async fn client(
    stack: Stack,
    upstreams: Vec<Upstream>,
    seed: u64,
    first: u64,
) -> Vec<(u64, Sort, CallerReply)> {
    let mut rng = fastrand::Rng::with_seed(seed ^ (first << 32));
    let mut all = Vec::new();
    for call in (first..CALLS).step_by(usize::try_from(CLIENTS).unwrap()) {
        let (tool, sort) = rng.choice(calls::KINDS).unwrap();
        let name = format!("set.{tool}");
        // a call to no server fails soon, and shows little
        rng.choice(&upstreams).unwrap().ready(HANGS).await.unwrap();
        let prepared = stack.prepare(&name, calls::arguments(tool, sort, call));
        let reply = match (prepared, rng.u8(0..20)) {
            (Err(error), _) => Some(Err(error)),
            (Ok(call), 0) => {
                let patience = Duration::from_millis(rng.u64(0..20));
                tokio::time::timeout(patience, stack.run(call)).await.ok()
            }
            (Ok(call), _) => Some(stack.run(call).await),
        };
        all.push((call, sort, reply));
    }
    all
}

/// Makes all calls, from many clients at once.
async fn all_calls(
    stack: &Stack,
    upstreams: &[Upstream],
    seed: u64,
) -> Vec<(u64, Sort, CallerReply)> {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|first| tokio::spawn(client(stack.clone(), upstreams.to_vec(), seed, first)))
        .collect();
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.unwrap());
    }
    all
}

fn options() -> UpstreamOptions {
    let mut options = UpstreamOptions::default();
    options.reconnect_cap = Duration::from_millis(20);
    options.greeting_timeout = Duration::from_secs(10);
    options
}

fn judge_all(all: &[(u64, Sort, CallerReply)], ledger: &Ledger) {
    let mut tally = Tally::default();
    for (call, sort, reply) in all {
        let judged = judge(*sort, reply, ledger.of(*call), false, &mut tally);
        assert_eq!(judged, Ok(()), "call {call}");
    }
    assert!(tally.unsafe_executions <= tally.unsafe_calls, "{tally:?}");
    // Most got through, and what did not was seen to fail after it was sent. Whether a call finds
    // no connection depends on when the machine runs it.
    let done = tally.replies.get("done").copied().unwrap_or_default();
    assert!(done * 3 > tally.unsafe_calls, "{tally:?}");
    for reply in ["unknown", "answered"] {
        assert!(
            tally.replies.get(reply).is_some_and(|count| *count > 3),
            "{reply}: {tally:?}"
        );
    }
    println!("{tally:?}");
}

#[tokio::test]
async fn unsafe_calls_over_http_run_at_most_once_at_any_cut() {
    let run = async {
        let ledger = Ledger::new();
        let mut servers = Vec::new();
        let mut upstreams = Vec::new();
        for (seed, era) in [(1, Era::Legacy), (2, Era::Modern)] {
            let tools = calls::tools();
            let chaos = Chaos::everything(seed).with_share(200).hastened(HASTE);
            let server = HttpServer::start(era, &tools, chaos, ledger.clone());
            let server = server.await.unwrap();
            let id = format!("http-{seed}").parse().unwrap();
            let target = Target::Http(HttpSpec::new(&server.url()).unwrap());
            upstreams.push(Upstream::start(id, target, options()));
            servers.push(server);
        }
        let stack = stack(&upstreams).await;
        let all = all_calls(&stack, &upstreams, 1).await;
        drop(stack);
        for server in &servers {
            server.settled().await;
        }
        judge_all(&all, &ledger);
    };
    tokio::time::timeout(HANGS, run).await.unwrap();
}

#[tokio::test]
async fn unsafe_calls_over_stdio_run_at_most_once_when_children_die() {
    let run = async {
        let folder = tempfile::tempdir().unwrap();
        let mut upstreams = Vec::new();
        let ledgers = [("legacy", 1), ("modern", 2)].map(|(era, seed)| {
            let ledger = folder.path().join(era);
            let args = [
                "--ledger",
                ledger.to_str().unwrap(),
                "--era",
                era,
                "--seed",
                &format!("{seed}"),
                "--share",
                // what breaks the pipe breaks it for all that are under way
                "30",
                "--hasten",
                &format!("{HASTE}"),
            ];
            let command = CommandSpec::new(env!("CARGO_BIN_EXE_chaos")).with_args(args);
            let id = format!("child-{seed}").parse().unwrap();
            upstreams.push(Upstream::start(id, Target::Command(command), options()));
            ledger
        });
        let stack = stack(&upstreams).await;
        let all = all_calls(&stack, &upstreams, 2).await;
        drop(stack);
        for upstream in upstreams {
            upstream.shutdown().await;
        }
        let ledger = Ledger::read(&ledgers).unwrap();
        judge_all(&all, &ledger);
    };
    tokio::time::timeout(HANGS, run).await.unwrap();
}
