//! Serving an old answer while a new one is fetched.

use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{CacheStatus, CallRecord, Delivery, Purpose};
use callward_testkit::{Gate, MockService};
use serde_json::json;

use super::{SECOND, TTL, answer, config, mark, pass, with};
use crate::common::{Bench, by, failure, read, set, settle, write};

const WINDOW: Duration = Duration::from_secs(60);

fn on() -> CacheConfig {
    config(|config| config.stale_while_revalidate = WINDOW)
}

/// A cache that has an answer whose time is over, and a server that waits for the gate.
async fn ended() -> (Bench, Gate) {
    let (mock, gate) = MockService::gated();
    let bench = Bench::with(on(), mock);
    gate.open(1);
    assert_eq!(bench.text(read()).await, "1");
    pass(TTL).await;
    (bench, gate)
}

#[tokio::test(start_paused = true)]
async fn an_ended_answer_is_served_with_a_mark_while_one_call_fetches_a_new_one() {
    let (bench, gate) = ended().await;
    pass(SECOND).await;
    let record = std::sync::Arc::new(CallRecord::new());
    let old = bench.ask(read().with_record(record.clone())).await.unwrap();
    assert_eq!(old.to_text(), "1");
    assert_eq!(record.cache(), CacheStatus::Stale);
    let mark = mark(&old);
    assert_eq!(
        (&mark["status"], &mark["age_ms"], &mark["reason"]),
        (&"stale".into(), &301_000.into(), &"revalidating".into())
    );
    settle().await;
    let fetched = &bench.mock.seen()[1];
    assert_eq!(fetched.purpose(), Purpose::Refresh);
    assert!(fetched.record().is_none() && fetched.deadline().is_none());
    gate.open(1);
    settle().await;
    let new = bench.ask(read()).await.unwrap();
    assert_eq!((new.to_text().as_str(), bench.mock.started()), ("2", 2));
    assert!(super::mark(&new).is_null());
    let stats = bench.stats();
    assert_eq!((stats.stale, stats.refreshes, stats.misses), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn many_stale_answers_start_one_refresh() {
    let (bench, gate) = ended().await;
    for _ in 0..64 {
        assert_eq!(bench.text(read()).await, "1");
    }
    settle().await;
    assert_eq!((bench.mock.started(), bench.stats().stale), (2, 64));
    gate.open(1);
    settle().await;
    assert_eq!(bench.text(read()).await, "2");
    assert_eq!(bench.mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_is_off_by_default_and_ends_with_its_window() {
    let off = Bench::new(MockService::counting());
    off.ask(read()).await.unwrap();
    pass(TTL).await;
    assert_eq!(off.text(read()).await, "2");

    let (bench, gate) = ended().await;
    pass(WINDOW - Duration::from_nanos(1)).await;
    assert_eq!(bench.text(read()).await, "1");
    settle().await;
    pass(Duration::from_nanos(1)).await;
    // the one that finds nothing any more waits for the call that runs, and makes none of its own
    let late = bench.start(read()).await;
    assert!(!late.is_finished());
    gate.open(1);
    assert_eq!(late.await.unwrap().unwrap().to_text(), "2");
    assert_eq!(bench.mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_goes_on_without_its_caller() {
    let (bench, gate) = ended().await;
    let caller = bench.start(read()).await;
    caller.abort();
    settle().await;
    gate.open(1);
    settle().await;
    assert_eq!((bench.mock.finished(), bench.mock.cancelled()), (2, 0));
    assert_eq!(bench.text(read()).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_write_makes_the_old_answer_unreachable_and_the_refresh_void() {
    let (bench, gate) = ended().await;
    assert_eq!(bench.text(read()).await, "1");
    settle().await;
    assert_eq!(bench.mock.running(), 1);
    let writing = bench.start(write()).await;
    gate.open(2);
    writing.await.unwrap().unwrap();
    settle().await;
    // neither the answer from before the write, nor the one that may have overlapped with it
    gate.open(1);
    let fresh = bench.ask(read()).await.unwrap();
    assert_eq!(fresh.to_text(), "4");
    assert!(mark(&fresh).is_null());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_finds_a_write_in_flight_is_not_sent() {
    let (bench, gate) = ended().await;
    bench.ask(read()).await.unwrap();
    // the refresh has not had its turn yet, and the write goes first
    let mut writing = std::pin::pin!(bench.ask(write()));
    tokio::select! {
        biased;
        _ = &mut writing => panic!("the gate is closed"),
        () = settle() => {}
    }
    let seen = bench.mock.seen();
    let refreshed = seen.iter().any(|call| call.purpose() == Purpose::Refresh);
    gate.open(1);
    writing.await.unwrap();
    assert_eq!((refreshed, bench.stats().bypassed), (false, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failing_refresh_leaves_the_old_answer_and_pauses_before_the_next() {
    let mock = MockService::new(|_, n| async move {
        match n {
            1 => Ok(answer("1")),
            _ => Err(failure(Delivery::Unknown)),
        }
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    for _ in 0..10 {
        assert_eq!(bench.text(read()).await, "1");
        settle().await;
    }
    assert_eq!(bench.mock.started(), 2, "one failed, and its pause runs");
    pass(read().plan().limits.first_backoff).await;
    settle().await;
    assert_eq!(bench.text(read()).await, "1");
    settle().await;
    assert_eq!(bench.mock.started(), 3);
    assert_eq!(bench.stats().failed_refreshes, 2);
    pass(WINDOW).await;
    assert_eq!(bench.text(read()).await, "unknown", "its window is over");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_times_out() {
    let (bench, _gate) = ended().await;
    bench.ask(read()).await.unwrap();
    settle().await;
    // the window of this answer is as long as it takes
    let timeout = read().plan().limits.attempt_timeout;
    tokio::time::sleep(2 * timeout + SECOND).await;
    assert_eq!((bench.mock.started(), bench.mock.cancelled()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn stale_answers_are_not_shared_between_principals() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::with(on(), mock);
    gate.open(2);
    assert_eq!(bench.text(by("a", read())).await, "1");
    pass(TTL).await;
    assert_eq!(bench.text(by("b", read())).await, "2");
    assert_eq!(bench.text(by("a", read())).await, "1");
    settle().await;
    let who = bench.mock.seen()[2].caller().principal.clone();
    assert_eq!(who.as_str(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_no_store_answer_removes_the_stale_one() {
    let mock = MockService::new(|_, n| async move {
        Ok(match n {
            2 => with(&json!({"ttlMs": 0, "content": [{"type": "text", "text": "2"}]})),
            n => answer(&n.to_string()),
        })
    });
    let bench = Bench::with(on(), mock);
    bench.ask(read()).await.unwrap();
    pass(TTL).await;
    assert_eq!(bench.text(read()).await, "1");
    settle().await;
    assert_eq!(bench.text(read()).await, "3");
}

#[tokio::test(start_paused = true)]
async fn only_reads_are_served_stale() {
    let bench = Bench::with(on(), MockService::counting());
    bench.ask(set(1)).await.unwrap();
    pass(5 * SECOND).await;
    assert_eq!(bench.text(set(1)).await, "2");
}
