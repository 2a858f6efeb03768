//! Serving the last answer because the server fails.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{CacheStatus, CallRecord, Delivery, ErrorKind, ToolError, ToolOutput};
use callward_testkit::MockService;
use serde_json::json;

use super::{SECOND, TTL, answer, config, mark, pass, with};
use crate::common::{Bench, by, read, set, settle, write};

const WINDOW: Duration = Duration::from_secs(600);

fn on() -> CacheConfig {
    config(|config| config.stale_if_error = WINDOW)
}

/// Answers the first call, and fails the others so.
fn then_failing(kind: ErrorKind) -> MockService {
    MockService::new(move |_, n| async move {
        match n {
            1 => Ok(answer("1")),
            _ => Err(ToolError::new(kind, Delivery::Unknown, "failed")),
        }
    })
}

/// A cache with an answer whose time is over, before a server that fails from now on.
async fn ended(kind: ErrorKind) -> Bench {
    let bench = Bench::with(on(), then_failing(kind));
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    bench
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_serves_the_last_answer_with_a_mark() {
    let bench = ended(ErrorKind::BreakerOpen).await;
    let record = Arc::new(CallRecord::new());
    let old = bench.ask(read().with_record(record.clone())).await.unwrap();
    assert_eq!(old.to_text(), "1");
    assert_eq!(record.cache(), CacheStatus::Stale);
    let mark = mark(&old);
    assert_eq!(
        (&mark["status"], &mark["age_ms"], &mark["reason"]),
        (&"stale".into(), &300_000.into(), &"breaker_open".into())
    );
    let stats = bench.stats();
    assert_eq!((stats.misses, stats.rescued, stats.stale), (2, 1, 0));
    // each is sent first: a server that is well again is heard of at once
    bench.ask(read()).await.unwrap();
    assert_eq!(bench.mock.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_covers_only_server_failures() {
    for (kind, covered) in [
        (ErrorKind::BreakerOpen, true),
        (ErrorKind::Cancelled, false),
        (ErrorKind::ConnectFailed, true),
        (ErrorKind::ConnectionLost, true),
        (ErrorKind::DeadlineExceeded, false),
        (ErrorKind::Internal, false),
        (ErrorKind::InvalidCall, false),
        (ErrorKind::NoEligibleServer, true),
        (ErrorKind::OutcomeUnknown, false),
        (ErrorKind::Overloaded, false),
        (ErrorKind::Protocol, true),
        (ErrorKind::RateLimited, false),
        (ErrorKind::ServerFault, true),
        (ErrorKind::Timeout, true),
        (ErrorKind::Unauthorized, false),
        (ErrorKind::UnknownTool, false),
    ] {
        let answer = ended(kind).await.ask(read()).await;
        assert_eq!(answer.is_ok(), covered, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_does_not_cover_tool_errors() {
    let mock = MockService::new(|_, n| async move {
        Ok(match n {
            1 => answer("1"),
            _ => ToolOutput::error_text("no such order"),
        })
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    assert!(bench.ask(read()).await.unwrap().is_error());
}

#[tokio::test(start_paused = true)]
async fn it_is_off_by_default_and_ends_with_its_window() {
    let off = Bench::new(then_failing(ErrorKind::Timeout));
    off.ask(read()).await.unwrap();
    pass(TTL).await;
    off.ask(read()).await.unwrap_err();

    let bench = ended(ErrorKind::Timeout).await;
    pass(WINDOW - Duration::from_nanos(1)).await;
    bench.ask(read()).await.unwrap();
    pass(Duration::from_nanos(1)).await;
    bench.ask(read()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_serves_no_answer_from_before_a_write() {
    let mock = MockService::new(|call, n| async move {
        match n {
            1 => Ok(answer("1")),
            _ if call.plan().is_write() => Ok(answer("written")),
            _ => Err(ToolError::new(
                ErrorKind::Timeout,
                Delivery::Unknown,
                "slow",
            )),
        }
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    bench.ask(write()).await.unwrap();
    bench.ask(read()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_write_during_the_failing_read_removes_the_stale_answer() {
    let mock = MockService::new(|call, n| async move {
        match n {
            1 => Ok(answer("1")),
            _ if call.plan().is_write() => Ok(answer("written")),
            _ => {
                tokio::time::sleep(10 * SECOND).await;
                Err(ToolError::new(
                    ErrorKind::Timeout,
                    Delivery::Unknown,
                    "slow",
                ))
            }
        }
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    let reading = bench.start(read()).await;
    bench.ask(write()).await.unwrap();
    reading.await.unwrap().unwrap_err();
    settle().await;
    assert_eq!(bench.stats().rescued, 0);
}

#[tokio::test(start_paused = true)]
async fn no_answer_older_than_one_already_served_is_served() {
    let mock = MockService::new(|_, n| async move {
        match n {
            1 => Ok(answer("1")),
            2 => Ok(with(
                &json!({"ttlMs": 0, "content": [{"type": "text", "text": "2"}]}),
            )),
            _ => Err(ToolError::new(
                ErrorKind::Timeout,
                Delivery::Unknown,
                "slow",
            )),
        }
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    assert_eq!(bench.text(read()).await, "2");
    bench.ask(read()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_does_not_cover_a_failing_refresh() {
    let both = config(|config| {
        config.stale_while_revalidate = 60 * SECOND;
        config.stale_if_error = WINDOW;
    });
    let bench = Bench::with(both, then_failing(ErrorKind::Timeout));
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    let reason = mark(&bench.ask(read()).await.unwrap())["reason"].clone();
    assert_eq!(reason, "revalidating");
    settle().await;
    let stats = bench.stats();
    assert_eq!(
        (stats.refreshes, stats.failed_refreshes, stats.rescued),
        (0, 1, 0)
    );
    // beyond the shorter window it is sent first, and the failure covered up
    pass(60 * SECOND).await;
    let reason = mark(&bench.ask(read()).await.unwrap())["reason"].clone();
    assert_eq!(reason, "timeout");
    assert_eq!(bench.stats().rescued, 1);
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_keeps_principals_apart_and_covers_no_write() {
    let bench = ended(ErrorKind::Timeout).await;
    bench.ask(by("b", read())).await.unwrap_err();
    let writes = Bench::with(on(), then_failing(ErrorKind::ConnectFailed));
    writes.ask(set(1)).await.unwrap();
    pass(5 * SECOND).await;
    writes.ask(set(1)).await.unwrap_err();
}
