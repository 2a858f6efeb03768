//! Each kind of call tells exactly what happened to it.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::cache::CacheConfig;
use callward::core::trail::{Stage, Verdict};
use callward::loopguard::LoopGuardConfig;
use callward::retry::RetryConfig;
use callward::{Delivery, ErrorKind, LimitsConfig, Server, Stack, StackBuilder, ToolOutput, Trail};
use callward_testkit::MockService;

use crate::bed::{failing, failure};
use crate::trail::bed::{prepare, run, stack, stack_with, steps, why};

/// Calls of tools, each after a pause, and what is reported of the last one.
struct Row {
    name: &'static str,
    builder: StackBuilder,
    service: MockService,
    calls: &'static [(u64, &'static str)],
    steps: &'static str,
    stage: Stage,
    why: &'static str,
}

fn row(name: &'static str, calls: &'static [(u64, &'static str)]) -> Row {
    Row {
        name,
        builder: Stack::builder(),
        service: MockService::counting(),
        calls,
        steps: "",
        stage: Stage::Answer,
        why: "",
    }
}

fn once() -> RetryConfig {
    let mut retry = RetryConfig::default();
    retry.max_attempts = 1;
    retry
}

fn rows() -> Vec<Row> {
    let mut stale = CacheConfig::default();
    stale.stale_if_error = Duration::from_secs(3600);
    let old = MockService::new(|_, n| async move {
        match n {
            1 => Ok(ToolOutput::text("old")),
            _ => Err(failure(ErrorKind::ServerFault, Delivery::Answered)),
        }
    });
    let fault = |times| failing(times, ErrorKind::ServerFault, Delivery::Answered);
    let breaker = || {
        let mut breaker = BreakerConfig::default();
        breaker.failures = 1;
        Stack::builder().retry(once()).breaker(breaker)
    };
    let mut guard = LoopGuardConfig::default();
    guard.failures = 1;
    vec![
        Row {
            steps: "cache:miss route#1:chosen@a attempt#1:answered@a answer:answered",
            stage: Stage::Cache,
            why: "reads the shared state",
            ..row("a read", &[(0, "read")])
        },
        Row {
            steps: "cache:hit answer:answered",
            stage: Stage::Cache,
            why: "made 2s ago",
            ..row("the same read again", &[(0, "read"), (2, "read")])
        },
        Row {
            builder: Stack::builder().cache(stale).retry(once()),
            service: old,
            steps: "cache:stale route#1:chosen@a attempt#1:failed@a retry#1:stop@a \
                    answer:answered",
            stage: Stage::Retry,
            why: "server_fault: all allowed attempts were made",
            ..row("an old answer for a failure", &[(0, "read"), (301, "read")])
        },
        Row {
            steps: "cache:invalidated route#1:chosen@a attempt#1:answered@a answer:answered",
            stage: Stage::Cache,
            why: "drops what depends on the shared state",
            ..row("a write", &[(0, "add")])
        },
        Row {
            builder: breaker(),
            service: fault(1),
            steps: "cache:invalidated route#1:chosen@a breaker#1:refused@a route#1:nobody \
                    attempt#1:failed@a retry#1:stop@a answer:failed",
            stage: Stage::Breaker,
            why: "the tool there: its breaker is open",
            ..row("an open breaker", &[(0, "add"), (0, "add")])
        },
        Row {
            builder: breaker(),
            service: fault(1),
            steps: "cache:invalidated route#1:chosen@a breaker#1:probe@a attempt#1:answered@a \
                    answer:answered",
            ..row("a probe", &[(0, "add"), (0, "add"), (120, "add")])
        },
        Row {
            builder: Stack::builder().loop_guard(guard),
            service: MockService::new(|_, _| async { Ok(ToolOutput::error_text("no")) }),
            steps: "cache:invalidated loop_guard:answered answer:tool_error",
            ..row("a failing call again", &[(0, "add"), (0, "add")])
        },
        Row {
            service: MockService::new(|_, _| std::future::pending()),
            steps: "cache:invalidated route#1:chosen@a timeout#1:ended attempt#1:failed@a \
                    retry#1:stop@a answer:failed",
            stage: Stage::Timeout,
            why: "no answer and no progress within 60s",
            ..row("no answer in time", &[(0, "add")])
        },
        Row {
            service: failing(1, ErrorKind::ConnectionLost, Delivery::Unknown),
            steps: "cache:invalidated route#1:chosen@a attempt#1:failed@a retry#1:stop@a \
                    answer:failed",
            why: "outcome_unknown, delivery unknown",
            ..row("a write that may have run", &[(0, "add")])
        },
        Row {
            service: fault(9),
            steps: "cache:miss route#1:chosen@a attempt#1:failed@a retry#1:retry@a \
                    route#2:chosen@a attempt#2:failed@a retry#2:retry@a \
                    route#3:chosen@a attempt#3:failed@a retry#3:stop@a answer:failed",
            why: "server_fault, delivery answered",
            ..row("attempts that all fail", &[(0, "read")])
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_call_says_what_happened_to_it() {
    for row in rows() {
        let stack = stack(row.builder, &[("a", row.service)]).await;
        let mut last = None;
        for (pause, tool) in row.calls {
            tokio::time::advance(Duration::from_secs(*pause)).await;
            last = Some(run(&stack, tool).await);
        }
        let trail = last.unwrap();
        assert_eq!(steps(&trail).join(" "), row.steps, "{}: {trail}", row.name);
        let reason = why(&trail, row.stage);
        assert!(
            row.why.is_empty() || reason == row.why,
            "{}: {reason}",
            row.name
        );
        for timeout in trail.of(Stage::Timeout) {
            assert_eq!(timeout.took, Some(Duration::from_secs(60)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_trail_has_the_hints_the_plan_and_each_decision_of_the_router() {
    let stack = stack(Stack::builder(), &[("a", MockService::counting())]).await;
    let trail = run(&stack, "read").await;
    let hints = "readOnlyHint=true (declared), idempotentHint=true (inferred)";
    assert!(trail.annotations.starts_with(hints), "{trail}");
    assert_eq!(trail.first(Stage::Plan).unwrap().verdict, Verdict::ReadOnly);
    assert!(trail.of(Stage::Route).all(|one| one.route.is_some()));
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
async fn a_limit_that_refuses_or_holds_up_is_told() {
    let mut limits = LimitsConfig::default();
    limits.rate.max_wait = Duration::ZERO;
    let mut cache = CacheConfig::default();
    cache.enabled = false;
    for (limits, last) in [
        (limits, "limit#1:refused"),
        (LimitsConfig::default(), "limit#1:waited"),
    ] {
        let builder = Stack::builder().limits(limits).cache(cache.clone());
        let stack = stack(builder.retry(once()), &[("a", MockService::counting())]).await;
        run(&stack, "rare").await;
        run(&stack, "rare").await;
        let third = run(&stack, "rare").await;
        assert_eq!(steps(&third)[..2], ["cache:bypass", last], "{third}");
        let reason = why(&third, Stage::Limit);
        assert_eq!(reason, "12 calls a minute for set::rare", "{third}");
        let waited = third.first(Stage::Limit).unwrap().waited.unwrap();
        assert_eq!(waited.is_zero(), last.ends_with("refused"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_permit_of_a_server_is_told() {
    let (service, gate) = MockService::gated();
    let one = |server: Server| server.max_concurrent(1);
    let stack = stack_with(Stack::builder(), &[("a", service)], one).await;
    let open = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.open(1);
        }
    };
    let (_, second, ()) = tokio::join!(run(&stack, "add"), run(&stack, "add"), open);
    let expected = "cache:invalidated route#1:chosen@a limit#1:waited attempt#1:answered@a \
                    answer:answered";
    assert_eq!(steps(&second).join(" "), expected);
    let waited = second.first(Stage::Limit).unwrap().waited.unwrap();
    assert_eq!(waited.as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_says_where_it_was() {
    let service = MockService::new(|_, _| std::future::pending());
    let stack = stack(Stack::builder(), &[("a", service)]).await;
    let (call, record) = prepare(&stack, "read");
    let running = stack.run(call.clone());
    let ended = tokio::time::timeout(Duration::from_secs(1), running).await;
    assert!(ended.is_err());
    let trail = Trail::observed(call.tool(), call.applied(), &record.facts(), None);
    let expected = "cache:miss route#1:chosen@a attempt#1:cancelled@a answer:cancelled";
    assert_eq!(steps(&trail).join(" "), expected);
}
