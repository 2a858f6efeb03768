//! Calls that cannot go where their key belongs.

use std::future::ready;
use std::sync::Arc;

use callward_core::{Delivery, ErrorKind, ReplicaSetId, ToolError, ToolOutput};
use callward_router::{Affinity, ExclusionReason, Member, Pool, Router};
use callward_testkit::{MockService, tool};
use tower::ServiceExt;

use crate::affinity::bed::{Bed, FOUR, by, read};
use crate::bed::server;

#[tokio::test(start_paused = true)]
async fn a_reason_that_concerns_one_call_moves_no_key() {
    for flaw in [
        ExclusionReason::BreakerOpen,
        ExclusionReason::HeldOpen,
        ExclusionReason::NotOffered,
        ExclusionReason::PinnedElsewhere,
        ExclusionReason::OverBudget {
            cost: 2.0,
            budget: 1.0,
        },
    ] {
        let bed = Bed::new(&FOUR);
        let homes = bed.read_all(100);
        bed.observed.take();
        bed.spoil("b", flaw);
        let detours = bed.read_all(100);
        for (home, detour) in homes.iter().zip(&detours) {
            assert!(detour != "b" && (home == "b" || home == detour), "{flaw:?}");
        }
        assert_eq!(bed.read_all(100), detours, "{flaw:?}");
        bed.heal("b");
        assert_eq!(bed.read_all(100), homes, "{flaw:?}");
        assert!(bed.observed.take().is_empty(), "nothing has moved");
    }
}

#[tokio::test(start_paused = true)]
async fn a_detour_leads_where_the_key_would_move_to() {
    let (one, other) = (Bed::new(&FOUR), Bed::new(&FOUR));
    assert_eq!(one.read_all(100), other.read_all(100));
    one.spoil("b", ExclusionReason::BreakerOpen);
    other.spoil("b", ExclusionReason::Unreachable);
    assert_eq!(one.read_all(100), other.read_all(100));
}

#[tokio::test(start_paused = true)]
async fn a_retry_goes_elsewhere_and_the_next_call_home() {
    let bed = Bed::new(&FOUR);
    let home = bed.read("1");
    let mut again = read("1");
    again.attempt_mut().advance(Some(&server(&home)));
    let elsewhere = bed.decide(&again);
    assert_ne!(elsewhere, home);
    assert_eq!(bed.decide(&again), elsewhere);
    assert_eq!(bed.read("1"), home);
}

#[tokio::test(start_paused = true)]
async fn a_detour_ends_where_its_server_is_unfit_too() {
    let bed = Bed::new(&FOUR);
    let home = bed.read("1");
    bed.spoil(&home, ExclusionReason::BreakerOpen);
    let detour = bed.read("1");
    bed.spoil(&detour, ExclusionReason::Unreachable);
    let third = bed.read("1");
    assert!(third != home && third != detour);
    bed.heal(&detour);
    assert_eq!(bed.read("1"), detour, "the ranking alone decides");
    bed.heal(&home);
    assert_eq!(bed.read("1"), home);
}

#[tokio::test(start_paused = true)]
async fn a_home_that_refuses_a_call_keeps_its_key() {
    let pool = Arc::new(Pool::new());
    let services = [(); 3].map(|()| {
        let full = || ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, "full");
        // once, in the middle
        MockService::new(move |_, number| {
            ready(match number {
                2 => Err(full()),
                _ => Ok(ToolOutput::text("ok")),
            })
        })
    });
    let members = ["a", "b", "c"].into_iter().zip(&services);
    let members = members.map(|(id, service)| Member::new(server(id), service.clone()));
    pool.set_members(ReplicaSetId::new("test").unwrap(), members.collect());
    let router = Router::new(pool).with_custom_strategy(Arc::new(Affinity::default()));
    for _ in 0..5 {
        let call = by("1", &tool("add").build());
        router.clone().oneshot(call).await.unwrap();
    }
    let mut started: Vec<usize> = services.iter().map(MockService::started).collect();
    started.sort_unstable();
    assert_eq!(
        started,
        [0, 1, 5],
        "five at home, and one of them elsewhere then"
    );
}
