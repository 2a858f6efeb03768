//! Sets that change while calls run.

use std::time::Duration;

use callward_core::{ErrorKind, ToolOutput};
use callward_router::{Drained, StrategyName};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::bed::{Bed, counting, member, not_sent, server, test_set, weight};

/// Takes a second; the first call is then refused as if there were no place.
fn slow_to_refuse() -> MockService {
    MockService::new(|_, n| async move {
        sleep(Duration::from_secs(1)).await;
        match n {
            1 => Err(not_sent(ErrorKind::Overloaded)),
            _ => Ok(ToolOutput::text("done")),
        }
    })
}

/// What may happen to `b` while `a` still thinks about the call.
type Change = fn(&Bed) -> bool;

const CHANGES: [Change; 3] = [
    |bed| bed.pool.drain(&server("b")).is_ok(),
    |bed| bed.pool.reweigh(&server("b"), weight(49)).is_ok(),
    |bed| bed.pool.remove_server(&server("b")).is_ok(),
];

#[tokio::test(start_paused = true)]
async fn a_fallback_goes_by_how_servers_are_when_it_is_chosen() {
    let delete = tool("delete").destructive().build();
    for (change, sent) in [(None, 1), (Some(0), 0), (Some(1), 0), (Some(2), 0)] {
        let slow = slow_to_refuse();
        let other = MockService::counting();
        let members = vec![
            member("a", &slow).with_weight(weight(100)),
            member("b", &other).with_weight(weight(60)),
        ];
        let bed = Bed::new(StrategyName::RoundRobin, members);
        let running = tokio::spawn(bed.router().oneshot(call(&delete, json!({}))));
        tokio::task::yield_now().await;
        assert_eq!(slow.started(), 1);
        if let Some(change) = change {
            assert!(CHANGES[change](&bed));
        }
        let result = running.await.unwrap();
        assert_eq!(other.started(), sent, "{change:?}");
        assert_eq!(result.is_ok(), sent == 1, "{change:?}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_may_still_fall_back_on_one_that_became_lighter() {
    let read = tool("read").read_only().build();
    let slow = slow_to_refuse();
    let members = vec![member("a", &slow), counting("b")];
    let bed = Bed::new(StrategyName::RoundRobin, members);
    let running = tokio::spawn(bed.router().oneshot(call(&read, json!({}))));
    tokio::task::yield_now().await;
    bed.pool.reweigh(&server("b"), weight(1)).unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(bed.started("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_removed_server_end_and_the_last_removes_the_set() {
    let read = tool("read").read_only().build();
    let slow = MockService::new(|_, _| async {
        sleep(Duration::from_secs(1)).await;
        Ok(ToolOutput::text("late"))
    });
    let bed = Bed::new(StrategyName::default(), vec![member("a", &slow)]);
    let running = tokio::spawn(bed.router().oneshot(call(&read, json!({}))));
    tokio::task::yield_now().await;
    let leaving = bed.pool.remove_server(&server("a")).unwrap();
    assert_eq!(leaving.in_flight(), 1);
    assert!(bed.pool.get(&test_set()).is_none());
    assert!(bed.pool.remove_server(&server("a")).is_err());
    let error = bed.send(call(&read, json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);

    // another one of the same name has nothing to do with it
    bed.pool.add(test_set(), counting("a"));
    assert_eq!(bed.in_flight("a"), 0);
    assert_eq!(bed.route(&read).await.0, "a");
    assert_eq!(leaving.finished().await, Drained::Idle);
    assert_eq!(running.await.unwrap().unwrap().to_text(), "late");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_end_of_a_drain_is_told_that_it_was_taken_back() {
    let read = tool("read").read_only().build();
    let slow = slow_to_refuse();
    let bed = Bed::new(StrategyName::default(), vec![member("a", &slow)]);
    let running = tokio::spawn(bed.router().oneshot(call(&read, json!({}))));
    tokio::task::yield_now().await;
    let draining = bed.pool.drain(&server("a")).unwrap();
    let reported = tokio::spawn(async move { draining.finished().await });
    tokio::task::yield_now().await;
    bed.pool.undrain(&server("a")).unwrap();
    assert_eq!(reported.await.unwrap(), Drained::Undrained);
    assert!(!running.is_finished());
}
