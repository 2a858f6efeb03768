//! Concurrent failures.

use super::*;

/// Makes so many calls, all of which are under way before the first fails.
async fn crowd(service: &Breaker<MockService>, count: usize) {
    let calls = (0..count).map(|_| service.clone().oneshot(read()));
    for outcome in join_all(calls).await {
        outcome.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_failures_of_one_event_count_once() {
    for kind in [
        ErrorKind::ConnectionLost,
        ErrorKind::Protocol,
        ErrorKind::ServerFault,
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
async fn concurrent_timeouts_and_refused_connections_count_each() {
    for kind in [ErrorKind::ConnectFailed, ErrorKind::Timeout] {
        let (mock, set) = (after_a_second(kind), BreakerSet::default());
        let service = breaker(mock, &set);
        crowd(&service, 2).await;
        assert_eq!(state(&set), BreakerState::Closed, "{kind}");
        crowd(&service, 1).await;
        assert_eq!(state(&set), BreakerState::Open, "{kind}");
        let set = BreakerSet::default();
        crowd(&breaker(after_a_second(kind), &set), 3).await;
        assert_eq!(state(&set), BreakerState::Open, "{kind}");
    }
}
