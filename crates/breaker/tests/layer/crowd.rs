//! What is a row where several call.

use callward_core::{Caller, Principal, SessionId};

use super::*;

/// Makes so many calls, all of which are under way before the first fails.
async fn crowd(service: &Breaker<MockService>, count: usize) {
    let calls = (0..count).map(|_| service.clone().oneshot(read()));
    for outcome in join_all(calls).await {
        outcome.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_all_calls_of_a_moment_counts_once() {
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

/// Of many callers one may be served again and again while the others wait, and its failures alone are
/// no row: any of the others may be answered. But nobody is waited for for long.
#[tokio::test(start_paused = true)]
async fn one_of_many_callers_opens_it_only_when_the_others_have_ended_or_take_long() {
    let counting = BreakerConfig::default();
    // each outcome is written down for the share, too
    let tallying = counting.with_failure_rate(100).with_min_calls(1_000);
    let all = ["answered", "failed", "dropped", "slow"];
    for (config, others) in [counting, tallying]
        .into_iter()
        .flat_map(|config| all.map(|others| (config, others)))
    {
        let mock = MockService::new(move |_, nth| async move {
            if nth < 7 {
                let wait = if others == "slow" { 3_600 } else { 1 };
                sleep(Duration::from_millis(wait * 100)).await;
                if others == "answered" {
                    return Ok(ToolOutput::text("fine"));
                }
            }
            failed(ErrorKind::ServerFault)
        });
        let set = BreakerSet::new(config).unwrap();
        let service = breaker(mock, &set);
        let rest: Vec<_> = (0..7)
            .map(|_| tokio::spawn(service.clone().oneshot(read())))
            .collect();
        tokio::task::yield_now().await;
        calls(&service, 50).await;
        assert_eq!(set.snapshot()[0].failures, 1, "{others}");
        if others == "dropped" {
            for call in &rest {
                call.abort();
            }
        }
        for _ in 0..2 {
            sleep(Duration::from_millis(150)).await;
            calls(&service, 1).await;
        }
        let expected = match others {
            "slow" => (BreakerState::Closed, 1),
            // the row was over
            "answered" => (BreakerState::Closed, 2),
            _ => (BreakerState::Open, 0),
        };
        let status = &set.snapshot()[0];
        assert_eq!((status.state, status.failures), expected, "{others}");
        if others == "slow" {
            for failures in [2, 0] {
                sleep(Duration::from_secs(1)).await;
                calls(&service, 5).await;
                assert_eq!(set.snapshot()[0].failures, failures);
            }
            assert_eq!(state(&set), BreakerState::Open);
        }
    }
}

/// Calls that take no time are served one by one, however many callers there are: what they lose then is
/// no row before it has gone on for a while.
#[tokio::test(start_paused = true)]
async fn what_several_callers_lose_within_a_moment_counts_once() {
    for is_long_ago in [false, true] {
        let mock = MockService::new(|_, nth| async move {
            if nth <= 2 {
                sleep(Duration::from_millis(1)).await;
                return Ok(ToolOutput::text("fine"));
            }
            failed(ErrorKind::ServerFault)
        });
        let set = BreakerSet::default();
        let service = breaker(mock, &set);
        let both = [(); 2].map(|()| service.clone().oneshot(read()));
        assert!(join_all(both).await.iter().all(Result::is_ok));
        if is_long_ago {
            advance(Duration::from_secs(1)).await;
            calls(&service, 3).await;
        } else {
            for (wait, failures) in [(0, 1), (99, 1), (1, 2), (99, 2)] {
                advance(Duration::from_millis(wait)).await;
                calls(&service, 20).await;
                assert_eq!(set.snapshot()[0].failures, failures);
            }
            advance(Duration::from_millis(1)).await;
            calls(&service, 1).await;
        }
        assert_eq!(state(&set), BreakerState::Open);
    }
}

/// Whoever calls is known by the session, where there are sessions.
#[tokio::test(start_paused = true)]
async fn what_several_sessions_lose_within_a_moment_counts_once() {
    for (sessions, expected) in [(1, BreakerState::Open), (2, BreakerState::Closed)] {
        let mock = MockService::new(|_, _| async { failed(ErrorKind::ServerFault) });
        let set = BreakerSet::default();
        let service = breaker(mock.clone(), &set);
        // made anew for each call, as by whoever keeps no sessions of his own
        let callers = (0..8).map(|number| {
            let id = SessionId::new(format!("session {}", number % sessions));
            Arc::new(Caller::new(Principal::new("she")).with_session(id))
        });
        for caller in callers {
            let call = read().with_caller(caller);
            service.clone().oneshot(call).await.unwrap_err();
        }
        assert_eq!(state(&set), expected, "{sessions} sessions");
        assert_eq!(mock.started(), if sessions == 1 { 3 } else { 8 });
    }
}

#[tokio::test(start_paused = true)]
async fn what_each_call_finds_out_for_itself_counts_each_time() {
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
