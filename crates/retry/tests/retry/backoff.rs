//! Any `Backoff` of the crate of that name as a schedule.
#![cfg(feature = "backoff")]

use std::time::Duration;

use callward_retry::backoff::backoff::backoff::{Constant, Stop};
use callward_retry::backoff::backoff::exponential::ExponentialBackoffBuilder;
use callward_retry::backoff::{Backoff, TokioClock, cloned, schedule};
use callward_retry::{MakeSchedule, RetryLayer};

use crate::bed::{self, attempts, of, read, run, with};

fn layer(schedule: impl MakeSchedule) -> RetryLayer {
    bed::layer(with(|config| attempts(config, 9))).with_schedule(schedule)
}

#[tokio::test(start_paused = true)]
async fn the_pauses_are_those_of_the_schedule() {
    let constant = layer(schedule(|| Constant::new(Duration::from_secs(2))));
    let ended = run(&constant, read(), "server_fault!").await;
    assert_eq!((ended.begins.len(), ended.took.as_secs()), (9, 16));
    let stop = layer(schedule(|| Stop {}));
    assert_eq!(run(&stop, read(), "server_fault!").await.begins, [0]);
    let write = run(&constant, of("pay"), "server_fault!").await;
    assert_eq!(write.begins, [0], "it makes nothing retryable");
}

#[tokio::test(start_paused = true)]
async fn each_call_has_a_schedule_of_its_own() {
    let mut used = ExponentialBackoffBuilder::<TokioClock>::new()
        .with_initial_interval(Duration::from_secs(1))
        .with_randomization_factor(0.0)
        .with_multiplier(2.0)
        .with_max_interval(Duration::from_secs(60))
        .with_max_elapsed_time(Some(Duration::from_secs(10)))
        .build();
    used.next_backoff();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let layer = layer(cloned(used));
    for _ in 0..2 {
        // 1 s, 2 s, 4 s: the next one would end after ten seconds
        let ended = run(&layer, read(), "server_fault!").await;
        assert_eq!(ended.begins, [0, 1_000, 3_000, 7_000]);
    }
}
