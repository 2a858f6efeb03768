//! Concurrent failures.

use super::*;

/// Makes calls, all of which are in flight before the first fails.
async fn crowd(service: &Breaker<MockService>, count: usize) {
    let calls = (0..count).map(|_| service.clone().oneshot(read()));
    for outcome in join_all(calls).await {
        outcome.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_failures_of_one_event_count_once() {
    for kind in [
        ErrorKind::ConnectFailed,
        ErrorKind::ConnectionLost,
        ErrorKind::Protocol,
        ErrorKind::ServerFault,
        ErrorKind::Timeout,
    ] {
        let (mock, set) = (after_a_second(kind), BreakerSet::default());
        let service = breaker(mock, &set);
        for failures in [1, 2] {
            crowd(&service, 8).await;
            assert_eq!(state(&set), BreakerState::Closed, "{kind}");
            assert_eq!(set.snapshot()[0].failures, failures, "{kind}");
        }
        crowd(&service, 8).await;
        assert_eq!(state(&set), BreakerState::Open, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_one_call_count_once() {
    let set = BreakerSet::default();
    let (service, id) = (breaker(down(), &set), server("a"));
    for failures in 1..=3 {
        let mut call = read();
        for _ in 0..4 {
            service.clone().oneshot(call.clone()).await.unwrap_err();
            call.attempt_mut().advance(Some(&id));
            let counted = set.snapshot()[0].failures;
            assert_eq!(counted, if failures < 3 { failures } else { 0 });
        }
    }
    assert_eq!(state(&set), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_failures_counts_every_attempt() {
    let config = BreakerConfig::default()
        .with_failure_rate(50)
        .with_min_calls(4);
    let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
    let service = breaker(down(), &set);
    let mut call = read();
    for _ in 0..4 {
        assert!(set.snapshot().iter().all(|one| one.opened == 0));
        service.clone().oneshot(call.clone()).await.unwrap_err();
        call.attempt_mut().advance(Some(&server("a")));
    }
    assert_eq!(state(&set), BreakerState::Open);
}
