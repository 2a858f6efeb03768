//! Calls that cannot go where their key belongs.

use std::future::ready;

use callward_core::{ErrorKind, ToolOutput};
use callward_router::{ExclusionReason, StrategyName};
use callward_testkit::MockService;

use crate::affinity::{read_all, sessions};
use crate::bed::{Bed, by, member, not_sent, received, server};

#[tokio::test(start_paused = true)]
async fn a_reason_that_concerns_one_call_moves_no_key() {
    let over_budget = ExclusionReason::OverBudget {
        cost: 2.0,
        budget: 1.0,
    };
    // where the keys would move to
    let moved = sessions("a b c d");
    let homes = read_all(&moved, 100);
    moved.spoil("b", ExclusionReason::Unreachable);
    let next = read_all(&moved, 100);
    for flaw in [
        ExclusionReason::BreakerOpen,
        ExclusionReason::HeldOpen,
        ExclusionReason::NotOffered,
        ExclusionReason::PinnedElsewhere,
        over_budget,
    ] {
        let bed = sessions("a b c d");
        assert_eq!(read_all(&bed, 100), homes);
        let mut listener = bed.pool.events().listen();
        bed.spoil("b", flaw);
        let detours = read_all(&bed, 100);
        for (home, detour) in homes.iter().zip(&detours) {
            assert!(detour != "b" && (home == "b" || home == detour), "{flaw:?}");
        }
        assert_eq!(detours, next, "{flaw:?}");
        bed.heal("b");
        assert_eq!(read_all(&bed, 100), homes, "{flaw:?}");
        assert!(received(&mut listener).is_empty(), "nothing has moved");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_goes_elsewhere_and_the_next_call_home() {
    let bed = sessions("a b c d");
    let home = bed.decide(&by(1, "read"));
    let mut again = by(1, "read");
    again.attempt_mut().advance(Some(&server(&home)));
    let elsewhere = bed.decide(&again);
    assert_ne!(elsewhere, home);
    assert_eq!(bed.decide(&again), elsewhere);
    assert_eq!(bed.decide(&by(1, "read")), home);
    // a detour whose server is unfit too goes to the next
    bed.spoil(&home, ExclusionReason::BreakerOpen);
    bed.spoil(&elsewhere, ExclusionReason::Unreachable);
    let third = bed.decide(&by(1, "read"));
    assert!(third != home && third != elsewhere);
    bed.heal(&elsewhere);
    let detour = bed.decide(&by(1, "read"));
    assert_eq!(detour, elsewhere, "the ranking alone decides");
    bed.heal(&home);
    assert_eq!(bed.decide(&by(1, "read")), home);
}

#[tokio::test(start_paused = true)]
async fn a_home_that_refuses_a_call_keeps_its_key() {
    // each server refuses its second call
    let services = ["a", "b", "c"].map(|_| {
        MockService::new(|_, number| {
            ready(match number {
                2 => Err(not_sent(ErrorKind::Overloaded)),
                _ => Ok(ToolOutput::text("ok")),
            })
        })
    });
    let members = ["a", "b", "c"].into_iter().zip(&services);
    let members = members.map(|(id, service)| member(id, service));
    let bed = Bed::new(StrategyName::Affinity, members.collect());
    for _ in 0..5 {
        bed.send(by(1, "add")).await.unwrap();
    }
    let mut started: Vec<usize> = services.iter().map(MockService::started).collect();
    started.sort_unstable();
    // five at home, and one of them elsewhere then
    assert_eq!(started, [0, 1, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_session_on_a_replica_destroys_on_a_primary_and_reads_on_its_replica() {
    let bed = sessions("primary spare=60 replica=49");
    let on_replica = |n: &usize| bed.decide(&by(n, "read")) == "replica";
    let sessions: Vec<usize> = (0..100).filter(on_replica).collect();
    assert!(sessions.len() > 10);
    for session in &sessions {
        let primary = bed.decide(&by(session, "delete"));
        assert_ne!(primary, "replica");
        assert_eq!(bed.decide(&by(session, "delete")), primary);
        assert!(on_replica(session));
    }
}
