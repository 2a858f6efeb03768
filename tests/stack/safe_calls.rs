//! Safe calls under faults of the way to the servers get through where repeats are not limited.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::retry::RetryConfig;
use callward::{Server, Stack, StackBuilder, ToolError};
use callward_testkit::calls;
use callward_testkit::chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
use futures_util::future::join_all;
use serde_json::json;

use crate::bed::paused;

const CALLS: u64 = 2_000;
const CLIENTS: u64 = 20;
const SERVERS: u64 = 4;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Repeats have this long; the pauses of ten attempts take a twentieth of it.
const DEADLINE: Duration = Duration::from_secs(600);

/// How a run went.
struct Outcome {
    failures: Vec<ToolError>,
    tried: u64,
}

/// This many attempts of a thousand fail, each for itself: no server is down for any time.
fn chaos(seed: u64, share: u32) -> Chaos {
    let (broken, after) = (Break::Reset, Duration::from_secs(60));
    Chaos::seeded(seed)
        .with_share(share)
        .with(1, Fault::Refuse)
        .with(1, Fault::LoseRequest { read: 600, broken })
        .with(1, Fault::LoseReply { sent: 200, broken })
        .with(1, Fault::LandLate { after, broken })
        .with_latency(Duration::from_millis(100))
}

/// Makes calls of a read and of an idempotent write, of which this many of a thousand meet a fault
/// each time they are tried.
fn run(seed: u64, share: u32, settings: impl FnOnce(StackBuilder) -> StackBuilder) -> Outcome {
    // what the router draws
    fastrand::seed(seed);
    paused().block_on(async {
        let ledger = Ledger::new();
        let mut tools = calls::tools();
        tools.retain(|tool| ["get", "set"].contains(&tool.name.as_str()));
        let mut builder = settings(Stack::builder().call_deadline(DEADLINE));
        for n in 0..SERVERS {
            let chaos = chaos(seed * SERVERS + n, share);
            let id = format!("s{n}").parse().unwrap();
            let server = ChaosServer::new(id, tools.clone(), chaos, ledger.clone());
            builder = builder.server(Server::new(server).in_set("set".parse().unwrap()));
        }
        let stack = builder.build().await.unwrap();
        let client = async |client: u64| {
            let mut failures = Vec::new();
            for call in (client..CALLS).step_by(usize::try_from(CLIENTS).unwrap()) {
                let tool = if call % 2 == 0 { "set.get" } else { "set.set" };
                failures.extend(stack.call(tool, json!({"call": call})).await.err());
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            failures
        };
        let failures: Vec<_> = join_all((0..CLIENTS).map(client)).await.concat();
        Outcome {
            failures,
            tried: ledger.total().tried,
        }
    })
}

fn seeded(seed: u64) -> RetryConfig {
    let mut retry = RetryConfig::default();
    retry.seed = Some(seed);
    retry
}

/// Everything but the budget, the breakers and how long they are waited for as it is by default:
/// ten attempts, because the chance that all of ten fail is 0.3^10, six in a million.
fn opened(seed: u64) -> RetryConfig {
    let mut retry = seeded(seed);
    (retry.max_attempts, retry.budget_percent) = (10, 1000);
    // as long as it takes a breaker to let it through
    retry.max_retry_after = DEADLINE;
    retry
}

/// Breakers that are made for such a way to the servers, and the default ones. Those open at three
/// failures in a row, so here they are open most of the time: a call gets through because it waits
/// for a probe.
fn breakers() -> [(BreakerConfig, BreakerConfig); 2] {
    // where three in ten of all calls fail, three failures in a row are no sign of anything
    let mut patient = BreakerConfig::default();
    (patient.failures, patient.failure_rate) = (0, Some(0.5));
    patient.min_calls = 100;
    [
        (patient, patient),
        (BreakerConfig::default(), BreakerConfig::server()),
    ]
}

#[test]
fn safe_calls_get_through_where_repeats_are_not_limited() {
    for seed in SEEDS {
        for (tool, server) in breakers() {
            let found = run(seed, 300, |stack| {
                let stack = stack.retry(opened(seed));
                stack.breaker(tool).server_breaker(server)
            });
            let (failed, tried) = (found.failures.len() as u64, found.tried);
            let first = found.failures.first();
            assert!(failed * 1_000 <= CALLS, "seed {seed}: {failed}, {first:?}");
            // the faults were there: each call is tried 1 / 0.7 times
            assert!(tried * 10 > CALLS * 13, "seed {seed}: {tried}");
        }
        // where one attempt in ten is lost, the defaults are enough
        let retry = seeded(seed);
        let failures = run(seed, 100, |stack| stack.retry(retry)).failures;
        let (failed, first) = (failures.len() as u64, failures.first());
        assert!(failed * 100 <= CALLS, "seed {seed}: {failed}, {first:?}");
    }
}
