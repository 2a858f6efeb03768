//! What happens when the chosen server refuses, fails, or is not ready.

use std::future::Ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, Reopening, ToolCall, ToolError, ToolOutput};
use callward_router::{Member, Pool, Router, StrategyName};
use callward_testkit::{MockService, contract};
use futures_util::FutureExt;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

use crate::bed::{
    Bed, counting, delete, member, members, not_sent, of, read, refusing, server, test_set,
};

/// A server `a` before others: calls of it fail with this error, or it is never ready with it.
fn before(error: &ToolError, others: &str) -> [Bed; 2] {
    let never_ready = MockService::counting().never_ready(error.clone());
    let both = [refusing("a", error.clone()), member("a", &never_ready)];
    both.map(|first| {
        let members = [first].into_iter().chain(members(others));
        Bed::new(StrategyName::RoundRobin, members.collect())
    })
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_goes_to_the_next_server_whatever_its_effect() {
    for kind in [ErrorKind::BreakerOpen, ErrorKind::Overloaded] {
        for effect in ["read", "put", "send", "delete"] {
            for bed in before(&not_sent(kind), "b") {
                let routed = bed.route(&of(effect)).await;
                assert_eq!(routed, ("b".to_owned(), "fallback: first choice refused"));
                assert_eq!(bed.started("b"), 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_failure_ends_the_call() {
    let failures = [
        not_sent(ErrorKind::ConnectFailed),
        not_sent(ErrorKind::RateLimited),
        ToolError::new(ErrorKind::Overloaded, Delivery::Answered, "busy"),
        ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "slow"),
        ToolError::new(ErrorKind::BreakerOpen, Delivery::Unknown, "odd"),
    ];
    for failure in failures {
        let named = failure.clone().with_server(server("behind-a"));
        for (error, of) in [(failure, "a"), (named, "behind-a")] {
            for bed in before(&error, "b") {
                let found = bed.fail(read()).await;
                assert_eq!(found.kind, error.kind);
                assert_eq!(found.server, Some(server(of)), "its own name is kept");
                assert_eq!(bed.started("b"), 0, "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_as_fit_as_the_first_choice() {
    let (open, full) = (ErrorKind::BreakerOpen, ErrorKind::Overloaded);
    for (kind, call, other) in [(open, delete(), "b=10"), (full, read(), "b!unreachable")] {
        for bed in before(&not_sent(kind), other) {
            assert_eq!(bed.fail(call.clone()).await.kind, kind);
            assert_eq!(bed.started("b"), 0, "{other}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_waited_for_only_where_there_is_no_other() {
    let never: Reopening = Arc::new(|| Box::pin(std::future::pending()));
    let mut gone = not_sent(ErrorKind::ConnectFailed);
    gone.reopening = Some(never);
    for others in ["", "b"] {
        for bed in before(&gone, others) {
            let error = bed.fail(read()).await;
            assert_eq!(error.reopening.is_some(), others.is_empty(), "{others}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn if_all_refuse_the_refusal_that_passes_first_is_returned() {
    let open = |secs| not_sent(ErrorKind::BreakerOpen).with_retry_after(Duration::from_secs(secs));
    let members = vec![
        refusing("a", open(30)),
        refusing("b", open(4)),
        refusing("c", not_sent(ErrorKind::Overloaded)),
    ];
    let bed = Bed::new(StrategyName::RoundRobin, members);
    assert_eq!(bed.fail(read()).await.server, Some(server("b")));
    for id in ["a", "b", "c"] {
        assert_eq!((bed.started(id), bed.in_flight(id)), (1, 0));
    }
}

/// A server that is never ready.
#[derive(Clone)]
struct NotReady;

impl Service<ToolCall> for NotReady {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Pending
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        panic!("called without being ready")
    }
}

fn not_ready() -> Arc<Pool<NotReady>> {
    let pool = Arc::new(Pool::new());
    pool.set_members(test_set(), vec![Member::new(server("a"), NotReady)]);
    pool
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_ready_is_waited_for_until_the_deadline() {
    let router = Router::new(not_ready());
    let start = Instant::now();
    let deadline = start + Duration::from_secs(3);
    let request = read().with_deadline(deadline.into_std());
    let error = router.oneshot(request).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery, Delivery::NotSent);
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_no_longer_in_flight_whatever_stage_it_was_in() {
    // waiting for readiness: not polled, and polled
    let pool = not_ready();
    let in_flight = || pool.get(&test_set()).unwrap().endpoints()[0].in_flight();
    for polls in [false, true] {
        let mut waiting = Router::new(pool.clone()).call(read());
        assert!(!polls || (&mut waiting).now_or_never().is_none());
        assert_eq!(in_flight(), 1);
        drop(waiting);
        assert_eq!(in_flight(), 0);
    }
    // running
    let (slow, _gate) = MockService::gated();
    let bed = Bed::one(member("a", &slow));
    let mut running = bed.router.clone().call(read());
    assert!((&mut running).now_or_never().is_none());
    assert_eq!((slow.running(), bed.in_flight("a")), (1, 1));
    drop(running);
    assert_eq!((slow.running(), bed.in_flight("a")), (0, 0));
    // done, but not yet dropped
    let bed = Bed::one(counting("a"));
    let mut done = bed.router.clone().call(read());
    assert!((&mut done).now_or_never().is_some());
    assert_eq!(bed.in_flight("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_router_keeps_the_contract_with_one_and_with_several_servers() {
    for ids in [&["a"][..], &["a", "b"]] {
        contract::check(|inner: MockService| {
            let pool = Arc::new(Pool::new());
            pool.set_members(
                test_set(),
                ids.iter().map(|id| member(id, &inner)).collect(),
            );
            Router::new(pool)
        })
        .await;
    }
}
