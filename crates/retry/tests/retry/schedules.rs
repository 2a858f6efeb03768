//! Custom schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callward_retry::{RetryConfig, RetryLayer, Schedule, Step};

use crate::bed::{ms, of, read, run};

/// Pauses of one second, two seconds, and so on, up to a number.
struct Counted {
    left: u32,
    next: Duration,
}

impl Schedule for Counted {
    fn next(&mut self, _: &Step) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        self.next += ms(1_000);
        Some(self.next)
    }
}

fn layer(made: &Arc<AtomicU32>) -> RetryLayer {
    let made = made.clone();
    let config = RetryConfig::default()
        .with_max_attempts(9)
        .with_budget_reserve(100);
    crate::bed::layer(config).with_schedule(move || {
        made.fetch_add(1, Ordering::SeqCst);
        Counted {
            left: 3,
            next: Duration::ZERO,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn each_retried_call_has_a_schedule_of_its_own_and_ends_with_it() {
    let made = Arc::default();
    let layer = layer(&made);
    for _ in 0..2 {
        let ended = run(&layer, read(), "server_fault!").await;
        assert_eq!(ended.begins, [0, 1_000, 3_000, 6_000]);
        let error = ended.result.unwrap_err();
        assert!(error.message().contains("no further pause"), "{error}");
    }
    assert_eq!(made.load(Ordering::SeqCst), 2);
    // what the server asks for is a floor here too
    let ended = run(&layer, read(), "server_fault!@2500").await;
    assert_eq!(ended.begins, [0, 2_500, 5_000, 8_000]);

    // it makes no call retryable, and costs nothing where none is retried
    let made = Arc::default();
    let layer = self::layer(&made);
    for (call, results) in [(of("pay"), "server_fault!"), (read(), "ok")] {
        assert_eq!(run(&layer, call, results).await.begins, [0]);
    }
    assert_eq!(made.load(Ordering::SeqCst), 0);
}
