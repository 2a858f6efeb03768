//! Attempts that run beside another one of the same call.

use crate::bed::{Bed, counting, not_sent, refusing, server, weight};
use callward_core::{ChosenServer, Delivery, ErrorKind, ToolCall};
use callward_router::{ExclusionReason, StrategyName};
use callward_testkit::{call, tool};
use serde_json::json;

/// A read that `a` already has.
fn beside_a() -> (ToolCall, ChosenServer) {
    let chosen = ChosenServer::default();
    let mut beside = call(&tool("read").read_only().build(), json!({}));
    beside.attempt_mut().avoid.push(server("a"));
    beside.attempt_mut().elsewhere_only = true;
    beside.attempt_mut().chosen = Some(chosen.clone());
    (beside, chosen)
}

#[tokio::test(start_paused = true)]
async fn it_goes_to_another_server_and_tells_which() {
    for strategy in [
        StrategyName::LeastConnections,
        StrategyName::RoundRobin,
        StrategyName::Weighted,
    ] {
        let bed = Bed::new(strategy, vec![counting("a"), counting("b")]);
        for _ in 0..4 {
            let (beside, chosen) = beside_a();
            bed.send(beside).await.unwrap();
            assert_eq!(chosen.get(), Some(server("b")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_fails_at_once_if_no_other_server_is_as_fit() {
    let beds = [
        vec![counting("a")],
        vec![
            counting("a"),
            counting("b").with_gate(|_| Err(ExclusionReason::Unreachable)),
        ],
        vec![counting("a"), counting("b").with_weight(weight(0))],
        vec![],
    ];
    for members in beds {
        let bed = Bed::new(StrategyName::default(), members);
        let (beside, chosen) = beside_a();
        let error = bed.send(beside).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
        assert_eq!(error.delivery(), Delivery::NotSent);
        assert_eq!(chosen.get(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_where_one_refuses_but_never_back() {
    let refuses = || refusing("b", not_sent(ErrorKind::Overloaded));
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![counting("a"), refuses(), counting("c")],
    );
    let (beside, chosen) = beside_a();
    bed.send(beside).await.unwrap();
    assert_eq!(chosen.get(), Some(server("c")));

    let bed = Bed::new(StrategyName::RoundRobin, vec![counting("a"), refuses()]);
    let error = bed.send(beside_a().0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
}
