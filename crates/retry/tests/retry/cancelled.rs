//! A call that is dropped at any moment.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{ToolCall, ToolError, ToolOutput};
use callward_retry::RetryConfig;
use callward_testkit::MockService;
use tokio::task::yield_now;
use tower::ServiceExt;
use tower_layer::Layer;
use tower_service::Service;

use crate::bed::{layer, read, result};

/// Keeps its callers waiting once before it is ready, as a limiter does.
#[derive(Clone)]
struct Slow {
    inner: MockService,
    waited: bool,
    waits: Arc<AtomicUsize>,
}

impl Service<ToolCall> for Slow {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = <MockService as Service<ToolCall>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        if !std::mem::replace(&mut self.waited, true) {
            self.waits.fetch_add(1, Ordering::SeqCst);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        self.waited = false;
        self.inner.call(call)
    }
}

/// Polls a call this often at most, with all the time in between that it wants, and drops it.
async fn poll_times(
    call: impl Future<Output = Result<ToolOutput, ToolError>>,
    times: usize,
) -> bool {
    let mut call = pin!(call);
    for _ in 0..times {
        let done = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
        if done {
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
    let mut drops_before_a_paid_retry = 0;
    loop {
        let config = RetryConfig::default().with_budget_reserve(10);
        let layer = layer(config);
        let mock = MockService::new(|_, _| async {
            yield_now().await;
            result("connection_lost?")
        });
        let slow = Slow {
            inner: mock.clone(),
            waited: false,
            waits: Arc::default(),
        };
        let service = layer.layer(slow.clone());
        let done = poll_times(service.oneshot(read()), polls).await;
        let retries = mock.started().saturating_sub(1);
        let left = layer.budgets().first().map_or(10, |budget| budget.tokens);
        assert_eq!(left as usize, 10 - retries, "after {polls} polls");
        let waits = slow.waits.load(Ordering::SeqCst);
        drops_before_a_paid_retry += usize::from(waits > mock.started());
        assert_eq!(mock.running(), 0);
        tokio::time::sleep(Duration::from_secs(600)).await;
        let attempts = retries + usize::from(mock.started() > 0);
        assert_eq!(mock.started(), attempts, "nothing runs on");
        if done {
            assert_eq!(retries, 2);
            break;
        }
        polls += 1;
    }
    assert!(
        polls > 6,
        "each wait, each attempt and each pause is an await"
    );
    assert!(
        drops_before_a_paid_retry >= 3,
        "also while a retry waits to be let in"
    );
}
