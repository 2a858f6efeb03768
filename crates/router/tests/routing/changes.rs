//! Sets that change while calls run.

use std::time::Duration;

use callward_core::{ErrorKind, ToolOutput};
use callward_router::{Drained, StrategyName};
use callward_testkit::MockService;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::bed::{Bed, counting, delete, member, not_sent, read, server, test_set, weight};

/// Takes a second; the first call is then refused as if there were no permit.
fn slow_to_refuse() -> MockService {
    MockService::new(|_, n| async move {
        sleep(Duration::from_secs(1)).await;
        match n {
            1 => Err(not_sent(ErrorKind::Overloaded)),
            _ => Ok(ToolOutput::text("done")),
        }
    })
}

/// Answers after a second.
fn slow() -> MockService {
    MockService::new(|_, _| async {
        sleep(Duration::from_secs(1)).await;
        Ok(ToolOutput::text("late"))
    })
}

/// What happens to `b` while `a` still has the call.
type Change = fn(&Bed) -> bool;

#[tokio::test(start_paused = true)]
async fn a_fallback_goes_by_how_servers_are_when_it_is_chosen() {
    let nothing: Change = |_| true;
    let drain: Change = |bed| bed.pool.drain(&server("b")).is_ok();
    let lighter: Change = |bed| bed.pool.reweigh(&server("b"), weight(49)).is_ok();
    let remove: Change = |bed| bed.pool.remove_server(&server("b")).is_ok();
    for (name, change, gets_writes, gets_reads) in [
        ("nothing", nothing, true, true),
        ("drained", drain, false, false),
        ("lighter", lighter, false, true),
        ("removed", remove, false, false),
    ] {
        for (call, is_sent) in [(delete(), gets_writes), (read(), gets_reads)] {
            let (first, other) = (slow_to_refuse(), MockService::counting());
            let members = vec![
                member("a", &first).with_weight(weight(100)),
                member("b", &other).with_weight(weight(60)),
            ];
            let bed = Bed::new(StrategyName::RoundRobin, members);
            let running = tokio::spawn(bed.router().oneshot(call));
            tokio::task::yield_now().await;
            assert_eq!(first.started(), 1, "{name}");
            assert!(change(&bed), "{name}");
            let result = running.await.unwrap();
            assert_eq!(other.started(), usize::from(is_sent), "{name}");
            assert_eq!(result.is_ok(), is_sent, "{name}: {result:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_drained_server_gets_no_call_and_reports_when_it_is_idle() {
    let bed = Bed::one(member("a", &slow()));
    let running = tokio::spawn(bed.router().oneshot(read()));
    tokio::task::yield_now().await;
    let idle = bed.pool.drain(&server("a")).unwrap();
    let error = bed.fail(read()).await;
    assert!(error.message().contains("a is drained"), "{error}");
    assert!(!running.is_finished());
    assert_eq!(idle.finished().await, Drained::Idle);
    running.await.unwrap().unwrap();
    bed.pool.undrain(&server("a")).unwrap();
    assert!(bed.send(read()).await.is_ok());
    assert!(bed.pool.drain(&server("z")).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_undone_ends_the_wait_for_it() {
    let bed = Bed::one(member("a", &slow()));
    let running = tokio::spawn(bed.router().oneshot(read()));
    tokio::task::yield_now().await;
    let draining = bed.pool.drain(&server("a")).unwrap();
    let reported = tokio::spawn(async move { draining.finished().await });
    tokio::task::yield_now().await;
    bed.pool.undrain(&server("a")).unwrap();
    assert_eq!(reported.await.unwrap(), Drained::Undrained);
    assert!(!running.is_finished());
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_removed_server_end_and_the_last_removes_the_set() {
    let bed = Bed::one(member("a", &slow()));
    let running = tokio::spawn(bed.router().oneshot(read()));
    tokio::task::yield_now().await;
    let leaving = bed.pool.remove_server(&server("a")).unwrap();
    assert_eq!(leaving.in_flight(), 1);
    assert!(bed.pool.get(&test_set()).is_none());
    assert!(bed.pool.remove_server(&server("a")).is_err());
    assert_eq!(bed.fail(read()).await.kind(), ErrorKind::NoEligibleServer);

    // another one of the same name has nothing to do with it
    bed.pool.add_all(test_set(), [counting("a")]);
    assert_eq!(bed.in_flight("a"), 0);
    assert_eq!(bed.route_call(read()).await.0, "a");
    assert_eq!(leaving.finished().await, Drained::Idle);
    assert_eq!(running.await.unwrap().unwrap().to_text(), "late");
}
