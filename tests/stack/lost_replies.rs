//! Calls of one server that loses replies, one in this many, through the whole stack.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::core::ServerEvent;
use callward::retry::RetryConfig;
use callward::{Delivery, ErrorKind, Server, Stack, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockServer, MockService};
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const CALLERS: u64 = 8;
const CALLS: u64 = 100;

/// How a run went.
#[derive(Debug)]
struct Outcome {
    failures: Vec<ToolError>,
    executed: usize,
    /// Of one call.
    most_runs: u32,
    slowest: Duration,
}

/// Returns `true` if the reply to an execution is lost: the same one whatever else runs.
fn is_lost(percent: u64, seed: u64, key: &str, nth: u32) -> bool {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    hasher.hash_one((seed, key, nth)) % 100 < percent
}

/// A tool that only reads.
fn read() -> Value {
    json!({"name": "it", "annotations": {"readOnlyHint": true}})
}

/// A tool of which each call adds something.
fn write() -> Value {
    json!({"name": "it", "annotations": {"destructiveHint": false}})
}

/// Makes the calls, each with a key of its own, by callers who wait for one answer after the other.
async fn run(
    tool: Value,
    seed: u64,
    percent: u64,
    breaker: BreakerConfig,
    kind: ErrorKind,
) -> Outcome {
    let delivery = match kind {
        ErrorKind::ServerFault => Delivery::Answered,
        _ => Delivery::Unknown,
    };
    let runs = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let counted = runs.clone();
    let mock = MockService::new(move |call: ToolCall, _| {
        let key = String::from_utf8_lossy(call.arguments()).into_owned();
        let mut runs = counted.lock();
        let nth = runs.entry(key.clone()).or_default();
        *nth += 1;
        let lost = is_lost(percent, seed, &key, *nth);
        async move {
            sleep(Duration::from_millis(1)).await;
            if lost {
                return Err(ToolError::new(kind, delivery, "scripted"));
            }
            Ok(ToolOutput::text("fine"))
        }
    });
    let server = MockServer::new("s", vec![tool], mock.clone());
    let building = Stack::builder()
        .server(Server::shared(server.clone()))
        .retry(RetryConfig::default().with_seed(seed))
        .breaker(breaker)
        .call_deadline(Duration::from_secs(600));
    let building = tokio::spawn(building.build());
    tokio::task::yield_now().await;
    server.emit(&ServerEvent::Up);
    let stack = building.await.unwrap().unwrap();
    let caller = async |caller: u64| {
        let (mut failures, mut slowest) = (Vec::new(), Duration::ZERO);
        for key in (caller..CALLS).step_by(usize::try_from(CALLERS).unwrap()) {
            let began = Instant::now();
            failures.extend(stack.call("s.it", json!({"key": key})).await.err());
            slowest = slowest.max(began.elapsed());
        }
        (failures, slowest)
    };
    let ran = join_all((0..CALLERS).map(caller)).await;
    Outcome {
        slowest: ran.iter().map(|(_, slowest)| *slowest).max().unwrap(),
        failures: ran.into_iter().flat_map(|(failures, _)| failures).collect(),
        executed: mock.started(),
        most_runs: runs.lock().values().copied().max().unwrap(),
    }
}

/// Makes a hundred calls with each of ten seeds. Says how many of them failed.
async fn failures(percent: u64, breaker: BreakerConfig, kind: ErrorKind) -> Vec<usize> {
    let mut failures = Vec::new();
    for seed in 0..10 {
        let outcome = run(read(), seed, percent, breaker, kind).await;
        for error in &outcome.failures {
            let reported = error.to_string();
            let says_so = ["budget", "waited"]
                .iter()
                .any(|why| reported.contains(why));
            let left_alone = error.retry_after() > Some(Duration::from_secs(60));
            assert!(says_so || left_alone || error.attempts() >= 3, "{reported}");
        }
        // a fifth, and the reserve
        assert!(outcome.executed <= 123, "{} executed", outcome.executed);
        // a call waits for breakers for a minute at most
        assert!(outcome.slowest < Duration::from_secs(62), "{outcome:?}");
        failures.push(outcome.failures.len());
    }
    failures
}

#[tokio::test(start_paused = true)]
async fn of_reads_that_lose_one_reply_in_ten_hardly_any_fails() {
    for kind in [ErrorKind::ServerFault, ErrorKind::ConnectionLost] {
        let failed = failures(10, BreakerConfig::default(), kind).await;
        assert!(failed.iter().sum::<usize>() <= 10, "{failed:?}");
    }
}

/// Among calls of eight, what is lost is not a row of failures: no call is refused, and nothing
/// runs again.
#[tokio::test(start_paused = true)]
async fn writes_of_many_run_once_each_though_three_in_ten_replies_are_lost() {
    let breaker = BreakerConfig::default();
    for kind in [ErrorKind::ServerFault, ErrorKind::ConnectionLost] {
        for seed in 0..10 {
            let outcome = run(write(), seed, 30, breaker, kind).await;
            assert_eq!(outcome.executed, 100, "{outcome:?}");
            assert_eq!(outcome.most_runs, 1, "{outcome:?}");
            let reported = |error: &ToolError| error.delivery() != Delivery::NotSent;
            assert!(outcome.failures.iter().all(reported), "{outcome:?}");
            let lost = outcome.failures.len();
            assert!((15..50).contains(&lost), "{lost} of 100");
        }
    }
}

/// Three in ten is more than the budget pays for: a hundred calls would take 43 repeats, and have
/// 23. The breakers of tools make it hardly worse: three in a row, each begun after the one before
/// was known, are rare among calls of eight.
#[tokio::test(start_paused = true)]
async fn where_the_budget_is_spent_breakers_that_open_make_it_hardly_worse() {
    let blind = BreakerConfig::default()
        .with_failures(0)
        .with_failure_rate(100);
    for kind in [ErrorKind::ServerFault, ErrorKind::ConnectionLost] {
        let without = failures(30, blind, kind).await;
        let failed = failures(30, BreakerConfig::default(), kind).await;
        let both = || without.iter().zip(&failed);
        let worse = both().filter(|(without, failed)| **failed > **without + 5);
        println!("{failed:?} failed, {without:?} with breakers that do not open");
        assert_eq!(worse.count(), 0, "{failed:?}, not {without:?}");
    }
}
