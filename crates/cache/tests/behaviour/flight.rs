//! Identical reads in flight run once, and no follower is stranded.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, Running, failure, read, set, settle, write};
use callward_core::{CacheStatus, CallRecord, Delivery, ErrorKind, ToolOutput};
use callward_testkit::MockService;
use tokio::time::Instant;

/// Starts `n` identical reads.
async fn crowd(bench: &Bench, n: usize) -> Vec<Running> {
    let mut all = Vec::new();
    for _ in 0..n {
        all.push(bench.start(read()).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn sixty_four_identical_reads_run_once() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let all = crowd(&bench, 64).await;
    gate.open(64);
    for one in all {
        assert_eq!(one.await.unwrap().unwrap().to_text(), "1");
    }
    assert_eq!(bench.mock.started(), 1);
    let stats = bench.stats();
    assert_eq!((stats.misses, stats.joined, stats.hits), (1, 63, 0));
}

#[tokio::test(start_paused = true)]
async fn who_joins_is_told_so() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let records = [(); 2].map(|()| Arc::new(CallRecord::new()));
    let first = bench.start(read().with_record(records[0].clone())).await;
    let second = bench.start(read().with_record(records[1].clone())).await;
    gate.open(1);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(records[0].cache(), CacheStatus::Miss);
    assert_eq!(records[1].cache(), CacheStatus::Joined);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_leader_hands_over_to_one_follower() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let mut all = crowd(&bench, 8).await;
    all.remove(0).abort();
    settle().await;
    assert_eq!((bench.mock.started(), bench.mock.running()), (2, 1));
    gate.open(8);
    for one in all {
        assert_eq!(one.await.unwrap().unwrap().to_text(), "2");
    }
    assert_eq!(bench.mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failing_leader_keeps_its_failure_and_hands_over() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let inside = gate.clone();
    let mock = MockService::new(move |_, n| {
        let gate = inside.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            match n {
                1 => Err(failure(Delivery::Answered)),
                2 => Ok(ToolOutput::error_text("the tool failed")),
                _ => Ok(ToolOutput::text("good")),
            }
        }
    });
    let bench = Bench::new(mock);
    let mut all = crowd(&bench, 5).await.into_iter();
    gate.add_permits(5);
    let mut next = async || all.next().unwrap().await.unwrap();
    assert_eq!(next().await.unwrap_err().kind(), ErrorKind::ServerFault);
    assert!(next().await.unwrap().is_error());
    for _ in 0..3 {
        assert_eq!(next().await.unwrap().to_text(), "good");
    }
    assert!(bench.mock.peak() <= 3, "{:?}", bench.mock);
}

#[tokio::test(start_paused = true)]
async fn followers_of_failing_leaders_do_not_run_one_by_one() {
    let mock = MockService::new(|_, n| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if n % 2 == 0 {
            Err(failure(Delivery::Answered))
        } else {
            Ok(ToolOutput::error_text("the tool failed"))
        }
    });
    let bench = Bench::new(mock);
    let start = Instant::now();
    for one in crowd(&bench, 64).await {
        let result = one.await.unwrap();
        assert!(result.is_err() || result.unwrap().is_error());
    }
    assert_eq!(bench.mock.started(), 64);
    // 1, 2, 4, 8, 16, 32 and the last one
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_leader_hands_over() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let inside = gate.clone();
    let mock = MockService::new(move |_, n| {
        let gate = inside.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            assert!(n > 1, "the first run panics, as the test wants it");
            Ok(ToolOutput::text(n.to_string()))
        }
    });
    let bench = Bench::new(mock);
    let mut all = crowd(&bench, 4).await;
    gate.add_permits(4);
    assert!(all.remove(0).await.unwrap_err().is_panic());
    for one in all {
        assert_eq!(one.await.unwrap().unwrap().to_text(), "2");
    }
    assert_eq!(bench.mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_stops_waiting_leaves_no_trace() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let mut all = crowd(&bench, 4).await;
    all.remove(1).abort();
    all.remove(1).abort();
    settle().await;
    assert_eq!(bench.mock.running(), 1);
    // the runner, too: only the last waiter is left to take over
    all.remove(0).abort();
    settle().await;
    assert_eq!(bench.mock.started(), 2);
    gate.open(1);
    assert_eq!(all.remove(0).await.unwrap().unwrap().to_text(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_flight_without_members_starts_afresh() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    for one in crowd(&bench, 3).await.into_iter().rev() {
        one.abort();
        settle().await;
    }
    assert_eq!((bench.mock.started(), bench.mock.running()), (1, 0));
    gate.open(1);
    assert_eq!(bench.text(read()).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_until_its_own_deadline() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let runner = bench.start(read()).await;
    let deadline = Instant::now() + Duration::from_secs(1);
    let hurried = bench.start(read().with_deadline(deadline.into())).await;
    let error = hurried.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!(Instant::now(), deadline);
    gate.open(1);
    assert_eq!(runner.await.unwrap().unwrap().to_text(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_does_not_join_one_from_before_it() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let before = bench.start(read()).await;
    let writing = bench.start(write()).await;
    let during = bench.start(read()).await;
    assert_eq!(bench.mock.running(), 3);
    writing.abort();
    settle().await;
    tokio::time::advance(Duration::from_secs(60)).await;
    let after = bench.start(read()).await;
    assert_eq!(bench.mock.running(), 3);
    gate.open(3);
    during.await.unwrap().unwrap();
    assert_eq!(before.await.unwrap().unwrap().to_text(), "1");
    assert_eq!(after.await.unwrap().unwrap().to_text(), "4");
    assert_eq!(bench.text(read()).await, "4");
}

/// A write that was lost: what it touched is unsettled.
async fn lose_a_write(bench: &Bench) {
    let writing = bench.start(write()).await;
    writing.abort();
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn reads_beside_a_write_share_a_run_that_began_later() {
    for is_in_flight in [true, false] {
        let (mock, gate) = MockService::gated();
        let bench = Bench::new(mock);
        if is_in_flight {
            bench.start(write()).await;
        } else {
            lose_a_write(&bench).await;
        }
        let already = bench.mock.running();
        let mut all = crowd(&bench, 64).await;
        assert_eq!(bench.mock.running(), already + 1, "{is_in_flight}");
        gate.open(already + 1);
        let first = all.remove(0).await.unwrap().unwrap().to_text();
        assert_eq!(first, "2");
        settle().await;
        // those that came while it ran get the answer of the next
        assert_eq!(bench.mock.started(), 3);
        gate.open(1);
        for one in all {
            assert_eq!(one.await.unwrap().unwrap().to_text(), "3");
        }
        let stats = bench.stats();
        assert_eq!((stats.joined, stats.bypassed), (62, 2), "{stats:?}");
        assert_eq!(bench.handle.stats().entries, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_beside_a_write_waits_two_seconds_or_the_p99() {
    for known in [None, Some(Duration::from_millis(100))] {
        let (mock, gate) = MockService::gated();
        let bench = Bench::new(mock);
        if let Some(took) = known {
            let quick = bench.start(read()).await;
            tokio::time::advance(took).await;
            gate.open(1);
            quick.await.unwrap().unwrap();
        }
        lose_a_write(&bench).await;
        let running = bench.mock.running();
        let _hangs = bench.start(read()).await;
        let began = Instant::now();
        let waits = [bench.start(read()).await, bench.start(read()).await];
        let longest = known.map_or(Duration::from_secs(2), |took| took * 5 / 4);
        while bench.mock.running() < running + 2 {
            assert!(began.elapsed() <= longest, "{:?}", began.elapsed());
            tokio::time::advance(Duration::from_millis(5)).await;
            settle().await;
        }
        assert!(began.elapsed() >= known.unwrap_or(longest));
        gate.open(bench.mock.running());
        for one in waits {
            one.await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_beside_a_write_that_fails_hands_over() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    lose_a_write(&bench).await;
    let first = bench.start(read()).await;
    let others = crowd(&bench, 3).await;
    first.abort();
    settle().await;
    gate.open(4);
    for one in others {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_not_polled_blocks_no_other_call() {
    use tower::Service;
    let mut bench = Bench::new(MockService::counting());
    let held = bench.cache.call(read());
    assert_eq!(bench.text(read()).await, "1");
    assert_eq!(bench.text(write()).await, "2");
    assert_eq!(bench.text(read()).await, "3");
    assert_eq!(held.await.unwrap().to_text(), "3");
}

#[tokio::test(start_paused = true)]
async fn identical_writes_at_the_same_time_all_run() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let all = [bench.start(set(1)).await, bench.start(set(1)).await];
    assert_eq!(bench.mock.running(), 2);
    gate.open(2);
    for one in all {
        one.await.unwrap().unwrap();
    }
}
