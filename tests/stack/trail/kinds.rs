//! Each kind of call tells exactly what happened to it.

use std::sync::Arc;
use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::cache::CacheConfig;
use callward::core::trail::{Stage, Verdict};
use callward::loopguard::LoopGuardConfig;
use callward::retry::RetryConfig;
use callward::{CallRecord, Delivery, ErrorKind, LimitsConfig, Server, Stack, ToolOutput, Trail};
use callward_testkit::{MockServer, MockService};
use futures_util::FutureExt;

use crate::trail::bed::{build, failing, failure, prepare, run, stack, steps, tools, why};

#[tokio::test(start_paused = true)]
async fn a_read_is_looked_up_and_the_next_one_found() {
    let stack = stack(Stack::builder(), &[("a", MockService::counting())]).await;
    let first = run(&stack, "read").await;
    assert_eq!(
        steps(&first),
        [
            "cache:miss",
            "route#1:chosen@a",
            "attempt#1:answered@a",
            "answer:answered"
        ]
    );
    assert_eq!(why(&first, Stage::Cache), "reads the shared state");
    let hints = "readOnlyHint=true (declared), idempotentHint=true (inferred)";
    assert!(first.annotations.starts_with(hints), "{first}");
    assert_eq!(first.first(Stage::Plan).unwrap().verdict, Verdict::ReadOnly);
    assert!(
        first
            .of(Stage::Route)
            .all(|reported| reported.route.is_some())
    );
    tokio::time::advance(Duration::from_secs(2)).await;
    let second = run(&stack, "read").await;
    assert_eq!(steps(&second), ["cache:hit", "answer:answered"]);
    assert_eq!(why(&second, Stage::Cache), "made 2s ago");
}

#[tokio::test(start_paused = true)]
async fn an_equal_read_joins_the_one_that_runs() {
    let (service, gate) = MockService::gated();
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let (first, second) = (run(&stack, "read"), run(&stack, "read"));
    let open = async {
        tokio::task::yield_now().await;
        gate.open(1);
    };
    let (_, second, ()) = tokio::join!(first, second, open);
    assert_eq!(steps(&second), ["cache:joined", "answer:answered"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_past_its_time_stands_in_for_a_failure_and_says_so() {
    let mut cache = CacheConfig::default();
    cache.stale_if_error = Duration::from_secs(3600);
    let service = MockService::new(|_, n| async move {
        match n {
            1 => Ok(ToolOutput::text("old")),
            _ => Err(failure(ErrorKind::ServerFault, Delivery::Answered)),
        }
    });
    let builder = Stack::builder()
        .cache(cache)
        .retry(RetryConfig::default().with_max_attempts(1));
    let stack = stack(builder, &[("a", service)]).await;
    run(&stack, "read").await;
    tokio::time::advance(Duration::from_secs(301)).await;
    let trail = run(&stack, "read").await;
    assert_eq!(
        steps(&trail),
        [
            "cache:stale",
            "route#1:chosen@a",
            "attempt#1:failed@a",
            "retry#1:stop@a",
            "answer:answered"
        ]
    );
    assert_eq!(
        why(&trail, Stage::Retry),
        "server_fault: all allowed attempts were made"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_drops_what_depends_on_its_set() {
    let stack = stack(Stack::builder(), &[("a", MockService::counting())]).await;
    let trail = run(&stack, "add").await;
    assert_eq!(
        steps(&trail),
        [
            "cache:invalidated",
            "route#1:chosen@a",
            "attempt#1:answered@a",
            "answer:answered"
        ]
    );
    let reason = why(&trail, Stage::Cache);
    assert_eq!(reason, "drops what depends on the shared state");
}

#[tokio::test(start_paused = true)]
async fn what_destroys_is_sent_to_nobody_where_no_server_is_heavy_enough() {
    let server = MockServer::new("a", tools(), MockService::counting());
    let light = |_: &str, server: Server| server.weight(10);
    let stack = build(Stack::builder(), vec![server], light).await;
    let trail = run(&stack, "drop").await;
    assert_eq!(
        steps(&trail),
        [
            "cache:invalidated",
            "route#1:nobody",
            "attempt#1:failed",
            "retry#1:stop",
            "answer:failed"
        ]
    );
    assert_eq!(
        trail.first(Stage::Confirm).unwrap().verdict,
        Verdict::Ask,
        "{trail}"
    );
    let reason = why(&trail, Stage::Answer);
    assert_eq!(reason, "no_eligible_server, delivery not_sent");
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_open_refuses_and_then_lets_a_probe_through() {
    let service = failing(1, ErrorKind::ServerFault, Delivery::Answered);
    let builder = Stack::builder()
        .retry(RetryConfig::default().with_max_attempts(1))
        .breaker(BreakerConfig::default().with_failures(1));
    let stack = stack(builder, &[("a", service)]).await;
    run(&stack, "add").await;
    let refused = run(&stack, "add").await;
    assert!(
        steps(&refused).contains(&"breaker#1:refused@a".to_owned()),
        "{refused}"
    );
    assert_eq!(
        why(&refused, Stage::Breaker),
        "the tool there: its breaker is open"
    );
    tokio::time::advance(Duration::from_secs(120)).await;
    let probed = run(&stack, "add").await;
    assert!(
        steps(&probed).contains(&"breaker#1:probe@a".to_owned()),
        "{probed}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_refuses_or_holds_up_is_told() {
    let mut limits = LimitsConfig::default();
    limits.rate = limits.rate.with_max_wait(Duration::ZERO);
    let mut cache = CacheConfig::default();
    cache.enabled = false;
    for (limits, last) in [
        (limits, "limit#1:refused"),
        (LimitsConfig::default(), "limit#1:waited"),
    ] {
        let builder = Stack::builder().limits(limits).cache(cache.clone());
        let builder = builder.retry(RetryConfig::default().with_max_attempts(1));
        let stack = stack(builder, &[("a", MockService::counting())]).await;
        run(&stack, "rare").await;
        run(&stack, "rare").await;
        let third = run(&stack, "rare").await;
        assert_eq!(steps(&third)[1], last, "{third}");
        assert_eq!(steps(&third)[0], "cache:bypass");
        assert_eq!(
            why(&third, Stage::Limit),
            "12 calls a minute for set::rare",
            "{third}"
        );
        let waited = third.first(Stage::Limit).unwrap().waited.unwrap();
        assert_eq!(waited.is_zero(), last.ends_with("refused"));
    }
}

#[tokio::test(start_paused = true)]
async fn places_of_a_server_are_waited_for_and_that_is_told() {
    let (service, gate) = MockService::gated();
    let server = MockServer::new("a", tools(), service);
    let one = |_: &str, server: Server| server.max_concurrent(1);
    let stack = build(Stack::builder(), vec![server], one).await;
    let open = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.open(1);
        }
    };
    let (_, second, ()) = tokio::join!(run(&stack, "add"), run(&stack, "add"), open);
    assert_eq!(
        steps(&second),
        [
            "cache:invalidated",
            "route#1:chosen@a",
            "limit#1:waited",
            "attempt#1:answered@a",
            "answer:answered"
        ]
    );
    let waited = second.first(Stage::Limit).unwrap().waited.unwrap();
    assert_eq!(waited.as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_repeats_a_failing_call_is_told_who_answered() {
    let service = MockService::new(|_, _| async { Ok(ToolOutput::error_text("no such order")) });
    let guard = LoopGuardConfig::default().with_failures(1);
    let stack = stack(Stack::builder().loop_guard(guard), &[("a", service)]).await;
    let first = run(&stack, "add").await;
    assert_eq!(steps(&first).last().unwrap(), "answer:tool_error");
    let second = run(&stack, "add").await;
    assert_eq!(
        steps(&second),
        [
            "cache:invalidated",
            "loop_guard:answered",
            "answer:tool_error"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_says_where_it_was() {
    let service = MockService::new(|_, _| std::future::pending());
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let (call, record) = prepare(&stack, "read");
    let running = stack.run(call.clone());
    assert!(
        tokio::time::timeout(Duration::from_secs(1), running)
            .await
            .is_err()
    );
    assert_eq!(
        steps(&Trail::observed(&call, &record, None)),
        [
            "cache:miss",
            "route#1:chosen@a",
            "attempt#1:cancelled@a",
            "answer:cancelled"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_says_what_ended_it() {
    let service = MockService::new(|_, _| std::future::pending());
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let trail = run(&stack, "add").await;
    assert_eq!(
        steps(&trail),
        [
            "cache:invalidated",
            "route#1:chosen@a",
            "timeout#1:ended",
            "attempt#1:failed@a",
            "retry#1:stop@a",
            "answer:failed"
        ]
    );
    assert_eq!(
        why(&trail, Stage::Timeout),
        "no answer and no progress within 60s"
    );
    assert_eq!(
        trail.first(Stage::Timeout).unwrap().took,
        Some(Duration::from_secs(60))
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_for_counting_has_no_decisions() {
    let service = failing(1, ErrorKind::ServerFault, Delivery::Answered);
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let record = Arc::new(CallRecord::for_counting());
    let call = stack.prepare("set.read", "{}").unwrap();
    stack.run(call.with_record(record.clone())).await.unwrap();
    assert_eq!(record.decisions(), (vec![], 0));
    assert_eq!(record.cache_scope(), None);
    // what is counted is there all the same
    assert_eq!(record.attempts().len(), 2);
    // and what is there at once needs no second look
    let hit = stack.prepare("set.read", "{}").unwrap();
    assert!(stack.run(hit).now_or_never().unwrap().is_ok());
}
