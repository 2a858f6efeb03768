//! Sets that change while calls run.

use std::time::Duration;

use callward_core::{ErrorKind, ToolError, ToolOutput};
use callward_router::{Drained, ExclusionReason, StrategyName};
use callward_testkit::MockService;
use proptest::prelude::*;
use tokio::time::sleep;
use tower::ServiceExt;

use crate::bed::{Bed, by, counting, delete, member, not_sent, read, server, test_set, weight};
use crate::never_below::strategies;

/// Calls of it take a second, and end like this.
fn slow(end: Result<ToolOutput, ToolError>) -> MockService {
    MockService::new(move |_, _| {
        let end = end.clone();
        async move {
            sleep(Duration::from_secs(1)).await;
            end
        }
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
            let first = slow(Err(not_sent(ErrorKind::Overloaded)));
            let other = MockService::counting();
            let members = vec![
                member("a", &first).with_weight(weight(100)),
                member("b", &other).with_weight(weight(60)),
            ];
            let bed = Bed::new(StrategyName::RoundRobin, members);
            let running = tokio::spawn(bed.router.clone().oneshot(call));
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
    let bed = Bed::one(member("a", &slow(Ok(ToolOutput::text("late")))));
    let running = tokio::spawn(bed.router.clone().oneshot(read()));
    tokio::task::yield_now().await;
    let draining = bed.pool.drain(&server("a")).unwrap();
    let error = bed.fail(read()).await;
    assert!(error.message.contains("a is drained"), "{error}");
    // a drain that is undone ends the wait for it
    let reported = tokio::spawn(async move { draining.finished().await });
    tokio::task::yield_now().await;
    bed.pool.undrain(&server("a")).unwrap();
    assert_eq!(reported.await.unwrap(), Drained::Undrained);
    let draining = bed.pool.drain(&server("a")).unwrap();
    assert!(!running.is_finished());
    assert_eq!(draining.finished().await, Drained::Idle);
    running.await.unwrap().unwrap();
    bed.pool.undrain(&server("a")).unwrap();
    assert!(bed.send(read()).await.is_ok());
    assert!(bed.pool.drain(&server("z")).is_err());
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_removed_server_end_and_the_last_removes_the_set() {
    let bed = Bed::one(member("a", &slow(Ok(ToolOutput::text("late")))));
    let running = tokio::spawn(bed.router.clone().oneshot(read()));
    tokio::task::yield_now().await;
    let leaving = bed.pool.remove_server(&server("a")).unwrap();
    assert_eq!(leaving.in_flight(), 1);
    assert!(bed.pool.get(&test_set()).is_none());
    assert!(bed.pool.remove_server(&server("a")).is_err());
    assert_eq!(bed.fail(read()).await.kind, ErrorKind::NoEligibleServer);

    // another one of the same name has nothing to do with it
    bed.pool.add_all(test_set(), [counting("a")]);
    assert_eq!(bed.in_flight("a"), 0);
    assert_eq!(bed.route_call(read()).await.0, "a");
    assert_eq!(leaving.finished().await, Drained::Idle);
    assert_eq!(running.await.unwrap().unwrap().to_text(), "late");
}

#[derive(Debug, Clone)]
enum Step {
    Read(u8),
    Destroy(u8),
    Spoil(usize, ExclusionReason),
    Heal(usize),
    Reweigh(usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let flaw = prop::sample::select(vec![
        ExclusionReason::BreakerOpen,
        ExclusionReason::Unreachable,
        ExclusionReason::NotOffered,
        ExclusionReason::Draining,
        ExclusionReason::HeldOpen,
    ]);
    let server = 0_usize..5;
    prop_oneof![
        3 => (0_u8..6).prop_map(Step::Read),
        3 => (0_u8..6).prop_map(Step::Destroy),
        1 => (server.clone(), flaw).prop_map(|(server, flaw)| Step::Spoil(server, flaw)),
        1 => server.clone().prop_map(Step::Heal),
        1 => (server, 0_u32..=100).prop_map(|(server, weight)| Step::Reweigh(server, weight)),
    ]
}

proptest! {
    /// Whatever changes between calls counts from the next one on, for sessions too.
    #[test]
    fn no_destructive_call_goes_below_its_weight_while_servers_change(
        steps in prop::collection::vec(step(), 1..80),
        strategy in strategies(),
    ) {
        let bed = Bed::of("s0 s1 s2 s3 s4");
        let router = bed.router.clone().with_custom_strategy(strategy);
        let (mut weights, mut flaws) = ([50; 5], [None; 5]);
        let place = |id: &str| id[1..].parse::<usize>().unwrap();
        for step in steps {
            match step {
                Step::Spoil(n, flaw) => {
                    flaws[n] = Some(flaw);
                    bed.spoil(&format!("s{n}"), flaw);
                }
                Step::Heal(n) => {
                    flaws[n] = None;
                    bed.heal(&format!("s{n}"));
                }
                Step::Reweigh(n, changed) => {
                    weights[n] = changed;
                    bed.pool.reweigh(&server(&format!("s{n}")), weight(changed)).unwrap();
                }
                Step::Read(session) => {
                    let well = flaws.iter().filter(|flaw| flaw.is_none()).count();
                    let chosen = router.decide(&by(session, "read"));
                    let flaw = chosen.map(|id| flaws[place(id.as_str())]);
                    // half of the set keeps getting reads although breakers are open
                    let is_kept = flaw == Some(Some(ExclusionReason::BreakerOpen)) && well < 2;
                    prop_assert!(well == 0 || flaw == Some(None) || is_kept, "{flaw:?}");
                }
                Step::Destroy(session) => {
                    let fit = |n: usize| weights[n] >= 50 && flaws[n].is_none();
                    match router.decide(&by(session, "delete")) {
                        Some(id) => prop_assert!(fit(place(id.as_str())), "{id}"),
                        None => prop_assert!(!(0..5).any(fit)),
                    }
                }
            }
        }
    }
}
