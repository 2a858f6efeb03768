//! Attempts that run beside another one of the same call.

use crate::bed::{Bed, members, not_sent, read, refusing, server};
use callward_core::{ChosenServer, Delivery, ErrorKind, ToolCall};
use callward_router::StrategyName;

/// A read that `a` already has.
fn beside_a() -> (ToolCall, ChosenServer) {
    let chosen = ChosenServer::default();
    let mut beside = read();
    beside.attempt_mut().avoid.push(server("a"));
    beside.attempt_mut().elsewhere_only = true;
    beside.attempt_mut().chosen = Some(chosen.clone());
    (beside, chosen)
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_goes_to_another_server_or_nowhere() {
    let none = Some(ErrorKind::NoEligibleServer);
    for (words, gets, fails) in [
        ("a b", Some("b"), None),
        ("a full c", Some("c"), None),
        ("a full", Some("full"), Some(ErrorKind::Overloaded)),
        ("a", None, none),
        ("a b!unreachable", None, none),
        ("a b=0", None, none),
        ("", None, none),
    ] {
        for strategy in [
            StrategyName::LeastConnections,
            StrategyName::RoundRobin,
            StrategyName::Weighted,
        ] {
            let mut members = members(words);
            for full in members
                .iter_mut()
                .filter(|one| one.server().as_str() == "full")
            {
                *full = refusing("full", not_sent(ErrorKind::Overloaded));
            }
            let bed = Bed::new(strategy, members);
            let (beside, chosen) = beside_a();
            let error = bed.send(beside).await.err();
            assert_eq!(error.as_ref().map(|error| error.kind()), fails, "{words}");
            assert!(
                error.is_none_or(|error| error.delivery() == Delivery::NotSent),
                "{words}"
            );
            assert_eq!(chosen.get(), gets.map(server), "{words}");
        }
    }
}
