//! What happens when the chosen server refuses, fails, or is not ready.

use std::future::Ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::bed::{Bed, counting, member, not_sent, refusing, server, test_set, weight};
use callward_core::{
    BoxFuture, CallRecord, Delivery, ErrorKind, Reopening, Reopens, ToolCall, ToolError, ToolOutput,
};
use callward_router::{ExclusionReason, Member, Pool, Router, StrategyName};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

#[tokio::test(start_paused = true)]
async fn a_refused_call_goes_to_the_next_server_whatever_its_effect() {
    for kind in [ErrorKind::BreakerOpen, ErrorKind::Overloaded] {
        for tool in [
            tool("read").read_only().build(),
            tool("put").idempotent().build(),
            tool("send").build(),
            tool("delete").destructive().build(),
        ] {
            let bed = Bed::new(
                StrategyName::RoundRobin,
                vec![refusing("a", not_sent(kind)), counting("b")],
            );
            let routed = bed.route(&tool).await;
            assert_eq!(routed, ("b".to_owned(), "fallback: first choice refused"));
            assert_eq!((bed.started("a"), bed.started("b")), (1, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_fallback_of_a_destructive_call_is_heavy_enough_too() {
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![
            refusing("a", not_sent(ErrorKind::BreakerOpen)),
            counting("b").with_weight(weight(10)),
        ],
    );
    let delete = tool("delete").destructive().build();
    let error = bed.send(call(&delete, json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert_eq!(bed.started("b"), 0);
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
        let bed = Bed::new(
            StrategyName::RoundRobin,
            vec![refusing("a", failure.clone()), counting("b")],
        );
        let read = tool("read").read_only().build();
        let error = bed.send(call(&read, json!({}))).await.unwrap_err();
        assert_eq!(error.kind(), failure.kind());
        assert_eq!(error.server(), Some(&server("a")), "the router names it");
        assert_eq!(bed.started("b"), 0, "{failure}");
    }
}

struct Never;

impl Reopens for Never {
    fn reopened(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_waited_for_only_where_there_is_no_other() {
    let gone = || not_sent(ErrorKind::ConnectFailed).with_reopening(Reopening::new(Never));
    let read = || call(&tool("read").read_only().build(), json!({}));
    for others in [0, 1] {
        let members = [refusing("a", gone()), counting("b")];
        let members = members.into_iter().take(1 + others).collect();
        let bed = Bed::new(StrategyName::RoundRobin, members);
        let error = bed.send(read()).await.unwrap_err();
        assert_eq!(error.reopening().is_some(), others == 0, "{others}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_itself_keeps_its_name() {
    let named = not_sent(ErrorKind::ConnectFailed).with_server(server("behind-a"));
    let bed = Bed::new(StrategyName::default(), vec![refusing("a", named)]);
    let error = bed
        .send(call(&tool("x").build(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.server(), Some(&server("behind-a")));
}

#[tokio::test(start_paused = true)]
async fn if_all_refuse_the_refusal_that_passes_first_is_returned() {
    let refusal =
        |secs| not_sent(ErrorKind::BreakerOpen).with_retry_after(Duration::from_secs(secs));
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![
            refusing("a", refusal(30)),
            refusing("b", refusal(4)),
            refusing("c", not_sent(ErrorKind::Overloaded)),
        ],
    );
    let error = bed
        .send(call(&tool("x").build(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.server(), Some(&server("b")));
    for id in ["a", "b", "c"] {
        assert_eq!((bed.started(id), bed.in_flight(id)), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_sick_server_is_no_fallback_for_a_healthy_one() {
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![
            refusing("a", not_sent(ErrorKind::Overloaded)),
            counting("b").with_gate(|_| Err(ExclusionReason::Unreachable)),
        ],
    );
    let error = bed
        .send(call(&tool("x").build(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(bed.started("b"), 0);
}

#[tokio::test(start_paused = true)]
async fn at_most_32_servers_are_asked() {
    let members = (0..40).map(|n| refusing(&format!("s{n}"), not_sent(ErrorKind::Overloaded)));
    let bed = Bed::new(StrategyName::RoundRobin, members.collect());
    let result = bed.send(call(&tool("x").build(), json!({}))).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Overloaded);
    let asked: usize = (0..40).map(|n| bed.started(&format!("s{n}"))).sum();
    assert_eq!(asked, 32);
}

/// A server that is never ready, or refuses in `poll_ready`.
#[derive(Clone)]
struct NotReady(Option<ToolError>);

impl Service<ToolCall> for NotReady {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.0
            .clone()
            .map_or(Poll::Pending, |e| Poll::Ready(Err(e)))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        panic!("called without being ready")
    }
}

fn pool_of(services: Vec<NotReady>) -> Arc<Pool<NotReady>> {
    let pool = Arc::new(Pool::new());
    let members = services
        .into_iter()
        .enumerate()
        .map(|(n, service)| Member::new(server(&format!("s{n}")), service));
    pool.set_members(test_set(), members.collect());
    pool
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_poll_ready_counts_as_a_refusal() {
    let pool = pool_of(vec![
        NotReady(Some(not_sent(ErrorKind::Overloaded))),
        NotReady(Some(not_sent(ErrorKind::ConnectFailed))),
    ]);
    let router = Router::new(pool).with_strategy(StrategyName::RoundRobin);
    let record = Arc::new(CallRecord::new());
    let request = call(&tool("x").build(), json!({})).with_record(record.clone());
    let error = router.oneshot(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectFailed);
    assert_eq!(record.server().unwrap().0, server("s1"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_ready_is_waited_for_until_the_deadline() {
    let router = Router::new(pool_of(vec![NotReady(None)]));
    let start = Instant::now();
    let deadline = start + Duration::from_secs(3);
    let request = call(&tool("x").build(), json!({})).with_deadline(deadline.into_std());
    let error = router.oneshot(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_not_in_flight_any_more_whatever_stage_it_was_in() {
    let x = tool("x").build();
    // waiting for readiness: not polled, and polled
    let pool = pool_of(vec![NotReady(None)]);
    let in_flight = || pool.get(&test_set()).unwrap().endpoints()[0].in_flight();
    let mut router = Router::new(pool.clone());
    let mut waiting = Box::pin(router.call(call(&x, json!({}))));
    assert_eq!(in_flight(), 1);
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(in_flight(), 1);
    drop(waiting);
    assert_eq!(in_flight(), 0);
    drop(router.call(call(&x, json!({}))));
    assert_eq!(in_flight(), 0);

    // running
    let (slow, _gate) = MockService::gated();
    let bed = Bed::new(StrategyName::default(), vec![member("a", &slow)]);
    let mut running = Box::pin(bed.router().call(call(&x, json!({}))));
    assert!(running.as_mut().now_or_never().is_none());
    assert_eq!((slow.running(), bed.in_flight("a")), (1, 1));
    drop(running);
    assert_eq!((slow.running(), bed.in_flight("a")), (0, 0));

    // done, but not yet dropped
    let bed = Bed::new(StrategyName::default(), vec![counting("a")]);
    let mut done = Box::pin(bed.router().call(call(&x, json!({}))));
    assert!(done.as_mut().now_or_never().is_some());
    assert_eq!(bed.in_flight("a"), 0);
}
