//! What moves, what stays, and where calls go that cannot go where their key belongs.

use std::future::ready;

use callward_core::{ErrorKind, ToolOutput};
use callward_router::{ExclusionReason, StrategyName};
use callward_testkit::MockService;

use crate::affinity::{read_all, sessions};
use crate::bed::{Bed, by, member, not_sent, received, server};

fn count(servers: &[String], server: &str) -> usize {
    servers.iter().filter(|s| *s == server).count()
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_session_go_to_one_server_and_sessions_spread() {
    let bed = sessions("a b c d");
    let homes = read_all(&bed, 400);
    assert_eq!(read_all(&bed, 400), homes);
    for server in ["a", "b", "c", "d"] {
        assert!((60..140).contains(&count(&homes, server)), "{homes:?}");
    }
    // a router that knows nothing of this one chooses alike
    assert_eq!(read_all(&sessions("d c b a"), 400), homes);
    // and no key moves while all servers are sick
    for server in ["a", "b", "c", "d"] {
        bed.spoil(server, ExclusionReason::Unreachable);
    }
    assert_eq!(read_all(&bed, 400), homes);
}

#[tokio::test(start_paused = true)]
async fn a_joining_server_or_a_new_weight_moves_no_key_in_use() {
    let bed = sessions("a b c");
    let homes = read_all(&bed, 200);
    // the heaviest comes first, so all others stand elsewhere than before
    bed.set_servers("a b c d=100");
    assert_eq!(read_all(&bed, 200), homes);
    let new = read_all(&bed, 1200).split_off(200);
    // two fifths of a thousand, give or take four sigmas
    let found = count(&new, "d");
    assert!((338..462).contains(&found), "{found}");
    bed.set_servers("a=10 b c=100 d");
    assert_eq!(read_all(&bed, 200), homes);
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_lost_server_spread_over_the_others_and_stay() {
    type Act = fn(&Bed);
    let removes: Act = |bed| bed.set_servers("a c d");
    let adds: Act = |bed| bed.set_servers("a b c d");
    let drains: Act = |bed| drop(bed.pool.drain(&server("b")));
    let undrains: Act = |bed| bed.pool.undrain(&server("b")).unwrap();
    let loses_it: Act = |bed| bed.spoil("b", ExclusionReason::Unreachable);
    let gate_drains: Act = |bed| bed.spoil("b", ExclusionReason::Draining);
    let heals: Act = |bed| bed.heal("b");
    for (how, lose, restore) in [
        ("removed", removes, adds),
        ("drained", drains, undrains),
        ("unreachable", loses_it, heals),
        ("drained, by its gate", gate_drains, heals),
    ] {
        let bed = sessions("a b c d");
        let homes = read_all(&bed, 400);
        lose(&bed);
        let after = read_all(&bed, 400);
        for (home, after) in homes.iter().zip(&after) {
            assert!(after != "b" && (home == "b" || home == after), "{how}");
        }
        restore(&bed);
        assert_eq!(read_all(&bed, 400), after, "{how}");
        // new ones find it
        assert!(count(&read_all(&bed, 800)[400..], "b") > 50, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preview_remembers_nothing() {
    let bed = sessions("a b c d");
    let mut listener = bed.pool.events().listen();
    let call = by(0, "read");
    let order = bed.order(&call);
    assert_eq!(order.len(), 4);
    assert_eq!(bed.router.explain(&call).chosen, Some(server(&order[0])));
    assert!(received(&mut listener).is_empty());
    assert_eq!(bed.decide(&call), order[0]);
    bed.spoil(&order[0], ExclusionReason::BreakerOpen);
    assert_eq!(bed.decide(&call), order[1]);
}

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
