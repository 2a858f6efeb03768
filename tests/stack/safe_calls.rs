//! Safe calls under faults of the way to the servers get through where repeats are not limited.

use std::time::Duration;

use callward::retry::RetryConfig;
use callward::{Server, Stack, ToolError};
use callward_testkit::calls;
use callward_testkit::chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
use futures_util::future::join_all;
use serde_json::json;

use crate::bed::paused;

const CALLS: u64 = 2_000;
const CLIENTS: usize = 20;
/// Repeats have this long; the pauses of ten attempts take a twentieth of it.
const DEADLINE: Duration = Duration::from_secs(600);

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
/// each time they are tried. Returns what failed, and how often calls were tried.
async fn run(seed: u64, share: u32, retry: RetryConfig) -> (Vec<ToolError>, u64) {
    let ledger = Ledger::new();
    let mut tools = calls::tools();
    tools.retain(|tool| ["get", "set"].contains(&tool.name.as_str()));
    let mut builder = Stack::builder().call_deadline(DEADLINE).retry(retry);
    for n in 0..4 {
        let chaos = chaos(seed * 4 + n, share);
        let id = format!("s{n}").parse().unwrap();
        let server = ChaosServer::new(id, tools.clone(), chaos, ledger.clone());
        builder = builder.server(Server::new(server).in_set("set".parse().unwrap()));
    }
    let stack = builder.build().await.unwrap();
    let client = async |client: usize| {
        let mut failures = Vec::new();
        for call in (0..CALLS).skip(client).step_by(CLIENTS) {
            let tool = if call % 2 == 0 { "set.get" } else { "set.set" };
            failures.extend(stack.call(tool, json!({"call": call})).await.err());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        failures
    };
    let failures = join_all((0..CLIENTS).map(client)).await.concat();
    (failures, ledger.total().tried)
}

#[test]
fn safe_calls_get_through_where_repeats_are_not_limited() {
    for seed in 1..=3 {
        let mut seeded = RetryConfig::default();
        seeded.seed = Some(seed);
        // the chance that all of ten attempts fail is 0.3^10, six in a million; a breaker opens at
        // three failures in a row, and the calls wait until it lets them through
        let mut opened = seeded;
        (opened.max_attempts, opened.budget_percent) = (10, 1000);
        opened.max_retry_after = DEADLINE;
        // where one attempt in ten is lost, the defaults are enough
        for (share, retry, of_calls, tried) in [(300, opened, 1_000, 13), (100, seeded, 100, 10)] {
            // what the router draws
            fastrand::seed(seed);
            let (failures, attempts) = paused().block_on(run(seed, share, retry));
            let failed = failures.len() as u64;
            let first = failures.first();
            assert!(failed * of_calls <= CALLS, "{failed}, {first:?}");
            // the faults were there
            assert!(attempts * 10 > CALLS * tried, "seed {seed}: {attempts}");
        }
    }
}
