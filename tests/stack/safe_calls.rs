//! Safe calls under faults of the way to the servers: they get through where repeats are not
//! limited, and where they are, no more is sent than the budget pays for, and what it refuses says
//! so.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::retry::RetryConfig;
use callward::{Server, Stack, StackBuilder, ToolDefinition, ToolError};
use callward_testkit::chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
use futures_util::future::join_all;
use serde_json::json;

const CALLS: u64 = 2_000;
const CLIENTS: u64 = 20;
const SERVERS: u64 = 4;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Repeats have this long; the pauses of ten attempts take a twentieth of it.
const DEADLINE: Duration = Duration::from_secs(600);

/// How a run went.
struct Outcome {
    ok: u64,
    failures: Vec<ToolError>,
    tried: u64,
}

/// This many attempts of a thousand fail, each for itself: no server is down for any time.
fn chaos(seed: u64, share: u32) -> Chaos {
    let broken = Break::Reset;
    Chaos::seeded(seed)
        .with_share(share)
        .with(1, Fault::Refuse)
        .with(1, Fault::LoseRequest { read: 600, broken })
        .with(1, Fault::LoseReply { sent: 200, broken })
        .with(
            1,
            Fault::LandLate {
                after: Duration::from_secs(60),
                broken,
            },
        )
        .with_latency(Duration::from_millis(100))
}

/// Makes calls of a read and of an idempotent write, of which this many of a thousand meet a fault
/// each time they are tried.
fn run(seed: u64, share: u32, settings: impl FnOnce(StackBuilder) -> StackBuilder) -> Outcome {
    // what the router draws
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let ledger = Ledger::new();
        let tools: Vec<_> = [
            r#"{"name":"get","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"set","inputSchema":{"type":"object"},
                "annotations":{"idempotentHint":true,"destructiveHint":false}}"#,
        ]
        .map(|raw| ToolDefinition::from_json(raw).unwrap())
        .into();
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
        let failed = u64::try_from(failures.len()).unwrap();
        Outcome {
            ok: CALLS - failed,
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
/// failures in a row, so here they are open most of the time: it is their purpose to leave a server
/// alone that fails so often. A call gets through because it waits for a probe, which takes a
/// deadline of minutes: of 2,000 calls up to eleven need more than five minutes, and none more than
/// ten.
fn breakers() -> [(BreakerConfig, BreakerConfig); 2] {
    [
        (patient(), patient()),
        (BreakerConfig::default(), BreakerConfig::server()),
    ]
}

#[test]
fn with_the_budget_opened_999_of_1000_succeed() {
    for seed in SEEDS {
        for (tool, server) in breakers() {
            let Outcome {
                ok,
                failures,
                tried,
            } = run(seed, 300, |stack| {
                let stack = stack.retry(opened(seed));
                stack.breaker(tool).server_breaker(server)
            });
            println!("seed {seed}: {ok} of {CALLS}, tried {tried}");
            assert!(
                ok * 1_000 >= CALLS * 999,
                "seed {seed}: {ok}, {:?}",
                failures.first()
            );
            // the faults were there: each call is tried 1 / 0.7 times
            assert!(tried * 10 > CALLS * 13, "seed {seed}: {tried}");
        }
    }
}

#[test]
fn of_calls_that_lose_one_attempt_in_ten_hardly_any_fails() {
    for seed in SEEDS {
        let retry = seeded(seed);
        let Outcome { ok, failures, .. } = run(seed, 100, |stack| stack.retry(retry));
        println!("seed {seed}: {ok} of {CALLS}");
        assert!(
            ok * 100 >= CALLS * 99,
            "seed {seed}: {ok}, {:?}",
            failures.first()
        );
    }
}

#[test]
fn the_default_budget_bounds_retries_and_a_refusal_names_it() {
    for seed in SEEDS {
        let ok = breakers().map(|(tool, server)| {
            let retry = seeded(seed);
            let Outcome {
                ok,
                failures,
                tried,
            } = run(seed, 300, |stack| {
                stack.retry(retry).breaker(tool).server_breaker(server)
            });
            // each call pays a fifth of a repeat, and three were there before any call
            assert!(tried * 10 <= CALLS * 12 + 30, "seed {seed}: {tried}");
            let says = |error: &ToolError, why: &str| error.to_string().contains(why);
            for error in &failures {
                let last = error.attempts >= retry.max_attempts;
                let known = last || says(error, "budget") || says(error, "deadline");
                assert!(known, "seed {seed}: {error}");
            }
            let refused = failures.iter().any(|error| says(error, "budget"));
            assert!(refused, "seed {seed}: nothing was refused");
            ok
        });
        // breakers that open make it hardly worse
        let [blind, default] = ok;
        println!("seed {seed}: {default} of {CALLS}, {blind} with breakers that hardly open");
        assert!(
            default * 20 >= blind * 19,
            "seed {seed}: {default}, not {blind}"
        );
    }
}

/// Where three in ten of all calls fail, three failures in a row are no sign of anything: a share
/// of them is.
fn patient() -> BreakerConfig {
    let mut config = BreakerConfig::default();
    (config.failures, config.failure_rate) = (0, Some(0.5));
    config.min_calls = 100;
    config
}
