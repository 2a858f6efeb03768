//! A call that is dropped at any moment.

use std::pin::pin;
use std::time::Duration;

use callward_testkit::MockService;
use futures_util::poll;
use tokio::task::yield_now;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{Output, layer, read, result, with};

/// Polls a call this often at most, with all the time in between that it wants, and drops it.
async fn poll_times(call: impl Future<Output = Output>, times: usize) -> bool {
    let mut call = pin!(call);
    for _ in 0..times {
        if poll!(call.as_mut()).is_ready() {
            return true;
        }
        // a pause passes; what is not one is ready again at once
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_spends_only_what_was_sent() {
    let mut polls = 0;
    loop {
        let layer = layer(with(|config| config.budget_reserve = 10));
        let mock = MockService::new(|_, _| async {
            yield_now().await;
            result("connection_lost?")
        });
        // callers wait once before it is ready, as for a limiter
        let service = layer.layer(mock.clone().ready_after(1));
        let done = poll_times(service.oneshot(read()), polls).await;
        let retries = mock.started().saturating_sub(1);
        let left = layer.budgets().first().map_or(10, |budget| budget.tokens);
        assert_eq!(left as usize, 10 - retries, "after {polls} polls");
        let started = mock.started();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(
            (mock.running(), mock.started()),
            (0, started),
            "nothing runs on"
        );
        if done {
            assert_eq!(retries, 2);
            break;
        }
        polls += 1;
    }
    assert!(
        polls >= 8,
        "three waits, three attempts and two pauses: {polls}"
    );
}
