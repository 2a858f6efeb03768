//! Each kind of call tells exactly what happened to it.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::cache::CacheConfig;
use callward::core::trail::Stage;
use callward::limit::ConcurrencyLimitLayer;
use callward::loopguard::LoopGuardConfig;
use callward::retry::RetryConfig;
use callward::{
    Caching, Delivery, ErrorKind, LimitsConfig, Server, Stack, StackBuilder, ToolOutput, Trail,
};
use callward_testkit::MockService;
use futures_util::future::join_all;
use tokio::time::sleep;

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
            steps: "cache:invalidated route#1:chosen@a breaker#1:refused@a route#1:no_server \
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
            steps: "loop_guard:answered answer:tool_error",
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
        let is_open = row.why.is_empty();
        assert!(is_open || reason == row.why, "{}: {reason}", row.name);
        for timeout in trail.of(Stage::Timeout) {
            assert_eq!(timeout.took, Some(Duration::from_secs(60)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_refuses_or_holds_up_is_a_step() {
    let (usual, mut strict) = (LimitsConfig::default(), LimitsConfig::default());
    strict.rate.max_wait = Duration::ZERO;
    let slow = MockService::new(|_, n| async move {
        sleep(Duration::from_secs(1)).await;
        Ok(ToolOutput::text(n.to_string()))
    });
    let rate = "12 calls a minute for set::rare";
    for (limits, tool, expected, reason, waited) in [
        (strict, "rare", "limit#1:refused", rate, 0..=0),
        (usual, "rare", "limit#1:waited", rate, 1..=5),
        (usual, "add", "limit#1:waited", "", 2..=2),
    ] {
        let builder = Stack::builder().limits(limits).retry(once());
        // one call at a time, and no more than two at once of the tool that is limited
        let one = |server: Server| {
            server
                .concurrency(ConcurrencyLimitLayer::new(1))
                .caching(Caching::Never)
        };
        let stack = stack_with(builder, &[("a", slow.clone())], one).await;
        let calls = join_all((0..3).map(|_| run(&stack, tool))).await;
        let third = &calls[2];
        assert!(steps(third).iter().any(|step| step == expected), "{third}");
        let limit = third.first(Stage::Limit).unwrap();
        assert!(limit.reason.contains(reason), "{third}");
        assert!(waited.contains(&limit.waited.unwrap().as_secs()), "{third}");
    }
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
