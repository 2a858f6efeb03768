//! What a write does to the reads around it, and when its own repeat is answered from the cache.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, failure, read, set, settle, write};
use callward_cache::{CacheConfig, CacheHandle};
use callward_core::{CallRecord, Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;

/// How long a write is unsettled that may still land, if its tool's p99 is not known.
const SETTLING: Duration = Duration::from_secs(10);

/// Of a tool without hints.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_is_fresh() {
    let destroy = call(&tool("drop").destructive().build(), json!({}));
    for write in [write(), set(1), destroy] {
        let bench = Bench::new(MockService::counting());
        assert_eq!(bench.text(read()).await, "1");
        bench.ask(write).await.unwrap();
        assert_eq!(bench.text(read()).await, "3");
        assert_eq!(bench.text(read()).await, "3");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_invalidates_reads_and_kept_writes_of_each_set_of_its_group() {
    // the states of the set that is read and of the set that is written
    for (read_state, written_state, meets) in [
        ("shared", "shared", true),
        ("own", "shared", false),
        ("shared", "own", false),
        ("own", "own", false),
        ("disk", "disk", true),
        ("disk", "shared", false),
        ("disk", "network", false),
    ] {
        let mut config = CacheConfig::default();
        for (set, state) in [("test", read_state), ("other", written_state)] {
            let (set, state) = (set.parse().unwrap(), state.parse().unwrap());
            config.scopes = config.scopes.with_state(set, state);
        }
        for kept in [read(), set(1)] {
            let bench = Bench::with(config.clone(), MockService::counting());
            assert_eq!(bench.text(kept.clone()).await, "1");
            assert_eq!(bench.text(kept.clone()).await, "1");
            let elsewhere = call(&tool("add").set("other").build(), json!({}));
            assert_eq!(bench.text(elsewhere).await, "2");
            let expected = if meets { "3" } else { "1" };
            assert_eq!(
                bench.text(kept).await,
                expected,
                "{read_state} {written_state}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_overlaps_a_write_serves_no_other_call() {
    // began before the write was sent, ended while it ran or after it was answered
    for ends_after_the_write in [false, true] {
        let (mock, gate) = MockService::gated();
        let bench = Bench::new(mock);
        let overlapping = bench.start(read()).await;
        let writing = bench.start(write()).await;
        // the gate lets them pass in the order they came, so a read that is to end last is asked
        // again after the write was dropped and had settled
        if ends_after_the_write {
            writing.abort();
            settle().await;
            tokio::time::advance(SETTLING).await;
            gate.open(2);
            assert_eq!(overlapping.await.unwrap().unwrap().to_text(), "1");
        } else {
            gate.open(1);
            assert_eq!(overlapping.await.unwrap().unwrap().to_text(), "1");
            gate.open(2);
            writing.await.unwrap().unwrap();
        }
        assert_eq!(bench.text(read()).await, "3");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_beside_a_write_is_not_kept() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let writing = bench.start(write()).await;
    let beside = bench.start(read()).await;
    gate.open(3);
    writing.await.unwrap().unwrap();
    assert_eq!(beside.await.unwrap().unwrap().to_text(), "2");
    assert_eq!(bench.text(read()).await, "3");
}

/// A service whose writes fail with this error.
fn failing(error: ToolError) -> MockService {
    MockService::new(move |call, n| {
        let fails = call.tool().name().as_str() == "add";
        let answer = Ok(ToolOutput::text(n.to_string()));
        ready(if fails { Err(error.clone()) } else { answer })
    })
}

#[tokio::test(start_paused = true)]
async fn a_failing_write_invalidates_too() {
    let refused = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, "no method");
    for error in [failure(Delivery::NotSent), refused.with_code(-32601)] {
        let bench = Bench::new(failing(error));
        assert_eq!(bench.text(read()).await, "1");
        bench.ask(write()).await.unwrap_err();
        assert_eq!(bench.text(read()).await, "3");
        // it did not run: there is nothing to wait for
        assert_eq!(bench.text(read()).await, "3");
    }
}

/// Makes reads, and expects that they are not cached until the settling time is over.
async fn expect_settling(bench: &Bench) {
    let before = bench.mock.started();
    for n in 1..=2 {
        bench.text(read()).await;
        assert_eq!(bench.mock.started(), before + n);
    }
    tokio::time::advance(SETTLING - Duration::from_nanos(1)).await;
    bench.text(read()).await;
    assert_eq!(bench.mock.started(), before + 3);
    tokio::time::advance(Duration::from_nanos(1)).await;
    for _ in 0..2 {
        bench.text(read()).await;
        assert_eq!(bench.mock.started(), before + 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_failed_at_a_server_settles_first() {
    let answered = failure(Delivery::Answered);
    for error in [
        failure(Delivery::Unknown),
        answered.clone().with_code(-32603),
        answered.clone().with_code(503).with_http_status(503),
        answered.with_code(404).with_http_status(404),
    ] {
        let bench = Bench::new(failing(error));
        bench.ask(write()).await.unwrap_err();
        expect_settling(&bench).await;
    }
}

/// Reads, and returns which run the answer came from.
async fn run_of(bench: &Bench) -> usize {
    let text = bench.text(read()).await;
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[tokio::test(start_paused = true)]
async fn after_settling_results_are_served_within_the_burst_until_the_deadline() {
    let bench = Bench::new(failing(failure(Delivery::Unknown)));
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let deadline = tokio::time::Instant::now() + minutes(10);
    let write = write().with_deadline(deadline.into_std());
    bench.ask(write).await.unwrap_err();
    let burst = CacheConfig::default().burst;
    for pause in [SETTLING, minutes(2), minutes(7)] {
        tokio::time::advance(pause).await;
        let first = run_of(&bench).await;
        tokio::time::advance(burst - Duration::from_nanos(1)).await;
        assert_eq!(run_of(&bench).await, first, "{pause:?}");
        tokio::time::advance(Duration::from_nanos(1)).await;
        assert_eq!(run_of(&bench).await, first + 1, "{pause:?}");
    }
    tokio::time::sleep_until(deadline).await;
    let first = run_of(&bench).await;
    tokio::time::advance(minutes(4)).await;
    assert_eq!(run_of(&bench).await, first);
}

#[tokio::test(start_paused = true)]
async fn the_tool_s_own_failure_is_unsettled_for_a_second() {
    let mock = MockService::new(|call, n| {
        let fails = call.tool().name().as_str() == "add";
        ready(Ok(match fails {
            true => ToolOutput::error_text("no"),
            false => ToolOutput::text(n.to_string()),
        }))
    });
    let bench = Bench::new(mock);
    bench.ask(write()).await.unwrap();
    tokio::time::advance(Duration::from_millis(999)).await;
    let first = run_of(&bench).await;
    assert_eq!(run_of(&bench).await, first + 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    for expected in [first + 2, first + 2] {
        assert_eq!(run_of(&bench).await, expected);
    }
    tokio::time::advance(CacheConfig::default().burst).await;
    assert_eq!(run_of(&bench).await, first + 3);
    tokio::time::advance(ATTEMPT_TIMEOUT).await;
    let first = run_of(&bench).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(run_of(&bench).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_quick_tool_settles_in_a_second_and_a_slow_one_in_four_p99() {
    for (takes, settles) in [(10, 1_000), (500, 2_000), (9_000, 10_000)] {
        let (takes, settles) = (Duration::from_millis(takes), Duration::from_millis(settles));
        let mock = MockService::new(move |call, n| async move {
            if call.tool().name().as_str() == "add" {
                tokio::time::sleep(takes).await;
            }
            match n {
                2 => Err(failure(Delivery::Unknown)),
                n => Ok(ToolOutput::text(n.to_string())),
            }
        });
        let bench = Bench::new(mock);
        bench.ask(write()).await.unwrap();
        bench.ask(write()).await.unwrap_err();
        tokio::time::advance(settles - Duration::from_millis(1)).await;
        assert_ne!(run_of(&bench).await, run_of(&bench).await);
        // the histogram's p99 is at most a quarter above the real one
        tokio::time::advance(settles / 4).await;
        assert_eq!(run_of(&bench).await, run_of(&bench).await, "{takes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_write_settles_first() {
    let mock = MockService::new(|call, n| async move {
        if call.tool().name().as_str() == "add" {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text(n.to_string()))
    });
    let bench = Bench::new(mock);
    let writing = bench.start(write()).await;
    writing.abort();
    settle().await;
    expect_settling(&bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_write_settles_first() {
    let mock = MockService::new(|call, n| {
        assert!(call.tool().name().as_str() != "add", "as the test wants it");
        ready(Ok(ToolOutput::text(n.to_string())))
    });
    let bench = Bench::new(mock);
    let writing = bench.start(write()).await;
    assert!(writing.await.unwrap_err().is_panic());
    expect_settling(&bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_retried_settles_first() {
    // what a retry layer leaves behind: the first attempt was given up on and may land late
    for with_record in [false, true] {
        let mock = MockService::new(|call, n| {
            if call.tool().name().as_str() == "set" {
                let record = call.record().unwrap();
                record.start_attempt();
                record.start_attempt();
            }
            ready(Ok(ToolOutput::text(n.to_string())))
        });
        let bench = Bench::new(mock);
        let call = if with_record {
            set(1).with_record(Arc::new(CallRecord::new()))
        } else {
            set(1)
        };
        bench.ask(call).await.unwrap();
        expect_settling(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_never_sent_changes_nothing() {
    use tower::Service;
    let mut bench = Bench::new(MockService::counting());
    assert_eq!(bench.text(read()).await, "1");
    drop(bench.cache.call(write()));
    assert_eq!(bench.text(read()).await, "1");
    assert_eq!(bench.stats().invalidations, 0);
}

/// Makes these idempotent writes in turn and returns how many ran.
async fn runs(bench: &Bench, values: &[u32]) -> usize {
    let before = bench.mock.started();
    for value in values {
        bench.text(set(*value)).await;
    }
    bench.mock.started() - before
}

#[tokio::test(start_paused = true)]
async fn only_the_repeat_of_the_very_last_write_is_answered_from_the_cache() {
    for (values, expected) in [(&[1, 1][..], 1), (&[1, 2, 1], 3), (&[1, 1, 2, 2, 1, 1], 3)] {
        let bench = Bench::new(MockService::counting());
        assert_eq!(runs(&bench, values).await, expected, "{values:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_write_in_between_makes_a_repeat_run() {
    let bench = Bench::new(MockService::counting());
    assert_eq!(runs(&bench, &[1]).await, 1);
    bench.ask(write()).await.unwrap();
    assert_eq!(runs(&bench, &[1]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_runs_again_after_five_seconds() {
    let bench = Bench::new(MockService::counting());
    runs(&bench, &[1]).await;
    tokio::time::advance(Duration::from_secs(5) - Duration::from_nanos(1)).await;
    assert_eq!(runs(&bench, &[1]).await, 0);
    tokio::time::advance(Duration::from_nanos(1)).await;
    assert_eq!(runs(&bench, &[1]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_repeat_of_a_failed_write_is_sent() {
    let mock = MockService::sequence(vec![
        Err(failure(Delivery::Answered)),
        Ok(ToolOutput::error_text("no")),
        Ok(ToolOutput::text("done")),
    ]);
    let bench = Bench::new(mock);
    for expected in ["answered", "no", "done", "done"] {
        assert_eq!(bench.text(set(1)).await, expected);
        if expected == "no" {
            tokio::time::advance(ATTEMPT_TIMEOUT).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn overlapping_writes_are_not_kept() {
    for value in [1, 2] {
        let (mock, gate) = MockService::gated();
        let bench = Bench::new(mock);
        let one = bench.start(set(1)).await;
        let other = bench.start(set(2)).await;
        gate.open(3);
        one.await.unwrap().unwrap();
        other.await.unwrap().unwrap();
        assert_eq!(runs(&bench, &[value]).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn no_write_is_skipped_while_another_is_in_flight() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    gate.open(1);
    assert_eq!(runs(&bench, &[1]).await, 1);
    let other = bench.start(write()).await;
    let repeat = bench.start(set(1)).await;
    assert_eq!(bench.mock.running(), 2);
    gate.open(2);
    other.await.unwrap().unwrap();
    repeat.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_sent_while_another_may_land_is_not_kept() {
    let bench = Bench::new(failing(failure(Delivery::Unknown)));
    bench.ask(write()).await.unwrap_err();
    assert_eq!(runs(&bench, &[1, 1]).await, 2);
    // settled, but the lost one might land until its attempt timeout has passed, and undo what was
    // set
    tokio::time::advance(SETTLING).await;
    assert_eq!(runs(&bench, &[1, 1]).await, 2);
    tokio::time::advance(ATTEMPT_TIMEOUT - SETTLING).await;
    assert_eq!(runs(&bench, &[1, 1]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_answered_after_another_could_land_is_not_kept() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let lost = bench.start(write()).await;
    lost.abort();
    settle().await;
    let slow = bench.start(set(1)).await;
    tokio::time::advance(SETTLING).await;
    gate.open(2);
    slow.await.unwrap().unwrap();
    // the lost one may have landed in between, and undone it
    assert_eq!(runs(&bench, &[1]).await, 1);
}

/// A purge follows a change past the cache: a write in flight may have come before it.
#[tokio::test(start_paused = true)]
async fn a_write_that_overlaps_a_purge_is_not_kept() {
    let own = set(1);
    let purges: [fn(&CacheHandle, &ToolCall); 4] = [
        |handle, _| handle.purge_all(),
        |handle, of| handle.purge_set(of.tool().set()),
        |handle, of| handle.purge_tool(of.tool().set(), of.tool().name()),
        |handle, of| handle.purge_principal(&of.caller().principal),
    ];
    for (n, purge) in purges.into_iter().enumerate() {
        let (mock, gate) = MockService::gated();
        let bench = Bench::new(mock);
        let writing = bench.start(own.clone()).await;
        purge(&bench.handle, &own);
        gate.open(9);
        writing.await.unwrap().unwrap();
        assert_eq!(runs(&bench, &[1, 1]).await, 1, "purge {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn caching_of_idempotent_writes_can_be_disabled() {
    let mut config = CacheConfig::default();
    config.idempotent_writes = false;
    let bench = Bench::with(config, MockService::counting());
    assert_eq!(runs(&bench, &[1, 1]).await, 2);
    assert_eq!(bench.stats().invalidations, 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_fingerprint_runs_and_invalidates() {
    let bench = Bench::new(MockService::counting());
    assert_eq!(bench.text(read()).await, "1");
    let odd = || ToolCall::new(tool("set").idempotent().build(), r#"{"a":1,"a":1}"#);
    assert_eq!(bench.text(odd()).await, "2");
    assert_eq!(bench.text(odd()).await, "3");
    assert_eq!(bench.text(read()).await, "4");
}
