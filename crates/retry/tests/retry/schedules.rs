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
