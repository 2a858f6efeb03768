//! Custom schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_retry::{Schedule, Step};

use crate::bed::{attempts, layer, ms, of, read, run, with};

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
        assert!(error.message().contains("no further pause"), "{error}");
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
    let write = run(&layer, of("pay"), "server_fault!").await;
    assert_eq!(write.begins, [0], "it makes nothing retryable");
}
