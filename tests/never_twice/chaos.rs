//! Unsafe calls through the whole stack, under random faults at every point.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_testkit::chaos::{Break, Chaos, Fault, Refusal};
use callward_testkit::truth::Tally;
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::sample::select;

use crate::round::Round;

/// Without the variable: enough to see any fault many times, and over in seconds.
const CALLS: u64 = 20_000;
/// How many calls share one stack.
const OF_A_ROUND: u64 = 2_000;
const CLIENTS: u64 = 40;

fn calls() -> u64 {
    std::env::var("NEVER_TWICE_CALLS").map_or(CALLS, |calls| calls.parse().unwrap())
}

fn round(seed: u64) -> Round {
    let chaos = |server: u64| {
        let share = [150, 300, 600][usize::try_from(seed % 3).unwrap()];
        Chaos::everything(seed.wrapping_mul(31) + server)
            .with_share(share)
            .with_latency(Duration::from_millis(200))
    };
    Round {
        seed,
        calls: seed * OF_A_ROUND..(seed + 1) * OF_A_ROUND,
        clients: CLIENTS,
        chaos: (0..=seed % 4).map(chaos).collect(),
    }
}

/// Runs rounds until this many unsafe calls were made, on all processors.
fn rounds(unsafe_calls: u64) -> Result<Tally, String> {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Ok(Tally::default())));
    let worker = || {
        while matches!(&*tally.lock(), Ok(tally) if tally.unsafe_calls < unsafe_calls) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let judged = round(seed).run();
            let mut all = tally.lock();
            match (&mut *all, judged) {
                (Ok(all), Ok(one)) => all.add(&one),
                (Ok(_), Err(fault)) => *all = Err(fault),
                (Err(_), _) => {}
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    tally.into_inner()
}

#[test]
fn an_unsafe_call_is_executed_at_most_once_and_its_caller_told_the_truth() {
    let unsafe_calls = calls();
    let tally = rounds(unsafe_calls).unwrap();
    assert!(tally.unsafe_calls >= unsafe_calls, "{tally:?}");
    assert!(tally.unsafe_executions <= tally.unsafe_calls, "{tally:?}");
    // each ending is common enough that a lie about it would have been seen
    for reply in [
        "done", "answered", "not_sent", "unknown", "gone", "is_error",
    ] {
        let count = tally.replies.get(reply).copied().unwrap_or_default();
        assert!(count * 200 >= unsafe_calls, "{reply}: {tally:?}");
    }
    println!("{tally:?}");
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    let broken = select(&[Break::Close, Break::Reset]);
    let code = select(&[429, 500, 503, 400, 401, 404, -32_603, -32_000, -32_602]);
    let seconds = |most: u64| (0..most).prop_map(Duration::from_secs);
    let wait = prop::option::of(seconds(90));
    let answer = (code, wait, any::<bool>()).prop_map(|(code, wait, runs)| Fault::Answer {
        refusal: match wait {
            Some(wait) => Refusal::new(code).with_retry_after(wait),
            None => Refusal::new(code),
        },
        runs,
    });
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(Fault::Refuse)),
        2 => answer.prop_map(Some),
        1 => any::<bool>().prop_map(|runs| Some(Fault::Report { runs })),
        1 => any::<bool>().prop_map(|runs| Some(Fault::Hang { runs })),
        1 => seconds(120).prop_map(|by| Some(Fault::Slow { by })),
        1 => seconds(120).prop_map(|within| Some(Fault::Drip { within })),
        1 => (seconds(600), broken.clone())
            .prop_map(|(after, broken)| Some(Fault::LandLate { after, broken })),
        1 => broken.clone().prop_map(|broken| Some(Fault::LoseReply { sent: 0, broken })),
        1 => broken.prop_map(|broken| Some(Fault::LoseRequest { read: 0, broken })),
        1 => (any::<bool>(), seconds(60)).prop_map(|(runs, down)| Some(Fault::Crash { runs, down })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // the same in small, so that what fails shrinks to a script that can be read
    #[test]
    fn whatever_happens_in_whatever_order_nothing_unsafe_is_executed_twice(
        seed in any::<u64>(),
        scripts in prop::collection::vec(prop::collection::vec(fault(), 1..8), 1..4),
        calls in 1_u64..24,
        clients in 1_u64..4,
    ) {
        let round = Round {
            seed,
            calls: 0..calls,
            clients,
            chaos: scripts.iter().cloned().map(Chaos::script).collect(),
        };
        if let Err(fault) = round.run() {
            prop_assert!(false, "{fault}");
        }
    }
}
