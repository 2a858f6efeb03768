//! When a call is retried: schedules, stated times, deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_core::trail::Verdict;
use callward_core::{CallRecord, CallStats, Tool};
use callward_retry::{RetryLayer, Schedule, Step};
use callward_testkit::call;
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{attempts, layer, ms, of, plain, read, rows, run, scripted, with, within};

/// How many attempts a call has, its milliseconds, the results of the server, when each attempt
/// begins, and a part of the error.
const PAUSES: &str = "
    max  within  results                                begins           error
    4    none    server_fault!                          0 100 300 700    scripted
    3    none    server_fault!@17000 ok                 0 17000          none
    3    none    server_fault!@30 ok                    0 100            none
    3    none    server_fault!@61000                    0                after 61s
    3    none    server_fault!@61000                    0                longest wait is 60s
    3    600000  breaker_open-@30000                    0 30100          waited for 30.1s
    3    30000   breaker_open-@30000                    0                30s away
    9    700     server_fault!                          0 100 300        scripted; not retried
    3    20000   server_fault!@20000                    0                scripted; not retried
    3    0       server_fault!                          0                scripted; not retried
";

#[tokio::test(start_paused = true)]
async fn attempts_begin_and_calls_end_as_the_table_says() {
    for [max, limit, results, begins, error] in rows(PAUSES) {
        let layer = layer(plain(|config| config.max_attempts = max.parse().unwrap()));
        let call = match limit.parse() {
            Ok(limit) => within(ms(limit), read()),
            Err(_) => read(),
        };
        let ended = run(&layer, call, results).await;
        let found: Vec<_> = ended.begins.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), begins, "{results} within {limit}");
        let last = ms(ended.begins.last().copied().unwrap() as u64);
        assert_eq!(ended.took, last, "a call that is given up ends at once");
        match ended.result {
            Ok(_) => assert_eq!(error, "none", "{results} within {limit}"),
            Err(found) => {
                let first = results.split(['!', '-']).next().unwrap();
                assert_eq!(found.kind.as_str(), first);
                assert!(found.message.contains(error), "{error:?} in {found}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_pause_is_half_of_what_attempts_take_within_bounds() {
    for (counted, took, begins) in [
        (0, 0, [0, 100]),
        (19, 4_000, [0, 100]),
        (20, 1_000, [0, 500]),
        (20, 60_000, [0, 2_000]),
        (20, 100, [0, 100]),
    ] {
        let mut tool = Tool::clone(read().tool());
        tool.stats = Some(Arc::<CallStats>::default());
        (0..counted).for_each(|_| tool.count_attempt(ms(took), false));
        let call = call(&Arc::new(tool), json!({}));
        let ended = run(&layer(plain(|_| ())), call, "server_fault! ok").await;
        assert_eq!(ended.begins, begins, "{counted} of {took} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_seed_replays_the_pauses_and_a_stated_time_is_a_floor_for_them() {
    let replay = async |seed| {
        let layer = layer(with(|config| {
            (config.seed, config.budget_reserve) = (Some(seed), 10);
        }));
        let first = run(&layer, read(), "server_fault!").await.begins;
        let second = run(&layer, read(), "server_fault!").await.begins;
        assert_ne!(first, second);
        [first, second]
    };
    assert_eq!(replay(7).await, replay(7).await);
    assert_ne!(replay(7).await, replay(8).await);
    // above the ceiling of 10 s, and with jitter
    let ended = run(&RetryLayer::default(), read(), "server_fault!@17000 ok").await;
    assert_eq!(ended.begins, [0, 17_000]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_breaker_is_no_attempt_before_the_deadline() {
    let patient = plain(|config| config.max_retry_after = ms(600_000));
    let results = "breaker_open-@30000 ".repeat(7) + "timeout? timeout? ok";
    let ended = run(&layer(patient), within(ms(600_000), read()), &results).await;
    assert_eq!((ended.begins.len(), ended.result.is_ok()), (10, true));
}

#[tokio::test(start_paused = true)]
async fn the_record_has_the_real_time_of_a_wait() {
    for (back_after, waited) in [(Some(5_000), 5_100), (None, 30_100)] {
        let (layer, record) = (layer(plain(|_| {})), Arc::new(CallRecord::new()));
        let call = within(ms(60_000), read()).with_record(record.clone());
        let set = call.tool().set().clone();
        let back = async {
            if let Some(after) = back_after {
                tokio::time::sleep(ms(after)).await;
                assert!(record.facts().decisions.is_empty());
                layer.server_is_back(&set);
            }
        };
        let (ended, ()) = tokio::join!(run(&layer, call, "breaker_open-@30000 ok"), back);
        ended.result.unwrap();
        let decisions = record.facts().decisions;
        assert_eq!(decisions[0].verdict, Verdict::Retry);
        assert_eq!(decisions[0].waited, Some(ms(waited)));
        assert_eq!(record.facts().pause_time, ms(waited));
    }
    // a call that is given up waited until then
    let record = Arc::new(CallRecord::new());
    let call = within(ms(60_000), read()).with_record(record.clone());
    let given_up = layer(plain(|_| {}))
        .layer(scripted("breaker_open-@30000"))
        .oneshot(call);
    let limit = ms(3_000);
    tokio::time::timeout(limit, given_up).await.unwrap_err();
    assert_eq!(record.facts().pause_time, limit);
    assert_eq!(record.facts().decisions[0].waited, Some(limit));
}

/// Pauses of one second, two seconds and three.
struct Counted(u64);

impl Schedule for Counted {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.0 += 1;
        (self.0 <= 3).then(|| ms(self.0 * 1_000))
    }
}

#[tokio::test(start_paused = true)]
async fn each_retried_call_has_a_schedule_of_its_own_and_ends_with_it() {
    let made = Arc::new(AtomicU64::new(0));
    let counted = made.clone();
    let layer = layer(with(|config| attempts(config, 9))).with_schedule(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Counted(0)
    });
    // it makes no call retryable, and costs nothing where none is retried
    for (call, results) in [(of("pay"), "server_fault!"), (read(), "ok")] {
        assert_eq!(run(&layer, call, results).await.begins, [0]);
    }
    for made_before in 0..2 {
        assert_eq!(made.load(Ordering::SeqCst), made_before);
        let ended = run(&layer, read(), "server_fault!").await;
        assert_eq!(ended.begins, [0, 1_000, 3_000, 6_000]);
        let error = ended.result.unwrap_err();
        assert!(error.message.contains("no further pause"), "{error}");
    }
    // what the server asks for is a floor here too
    let ended = run(&layer, read(), "server_fault!@2500").await;
    assert_eq!(ended.begins, [0, 2_500, 5_000, 8_000]);
}

#[cfg(feature = "backoff")]
#[tokio::test(start_paused = true)]
async fn each_call_has_a_backoff_of_that_crate_of_its_own() {
    use callward_retry::backoff::backoff::exponential::ExponentialBackoffBuilder;
    use callward_retry::backoff::{Backoff, TokioClock, cloned};

    let mut used = ExponentialBackoffBuilder::<TokioClock>::new()
        .with_initial_interval(ms(1_000))
        .with_randomization_factor(0.0)
        .with_multiplier(2.0)
        .with_max_elapsed_time(Some(ms(10_000)))
        .build();
    used.next_backoff();
    tokio::time::sleep(ms(100_000)).await;
    let layer = layer(with(|config| attempts(config, 9))).with_schedule(cloned(used));
    for _ in 0..2 {
        // 1 s, 2 s, 4 s: the next one would end after ten seconds
        let ended = run(&layer, read(), "server_fault!").await;
        assert_eq!(ended.begins, [0, 1_000, 3_000, 7_000]);
    }
}
