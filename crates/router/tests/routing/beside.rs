//! Attempts that run beside another one of the same call.

use crate::bed::{Bed, members, not_sent, read, refusing, server};
use callward_core::{ChosenServer, Delivery, ErrorKind};
use callward_router::StrategyName;

#[tokio::test(start_paused = true)]
async fn a_second_attempt_goes_to_another_server_or_nowhere() {
    let none = Some(ErrorKind::NoEligibleServer);
    let full = Some(ErrorKind::Overloaded);
    for (words, gets, fails) in [
        ("a b", Some("b"), None),
        ("a full c", Some("c"), None),
        ("a full", Some("full"), full),
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
            let members = members(words)
                .into_iter()
                .map(|one| match one.server().as_str() {
                    "full" => refusing("full", not_sent(ErrorKind::Overloaded)),
                    _ => one,
                });
            let bed = Bed::new(strategy, members.collect());
            // a read that `a` already has
            let (mut beside, chosen) = (read(), ChosenServer::default());
            beside.attempt_mut().avoid.push(server("a"));
            beside.attempt_mut().elsewhere_only = true;
            beside.attempt_mut().chosen = Some(chosen.clone());
            let error = bed.send(beside).await.err();
            assert_eq!(error.as_ref().map(|error| error.kind()), fails, "{words}");
            let is_unsent = error.is_none_or(|error| error.delivery() == Delivery::NotSent);
            assert!(is_unsent, "{words}");
            assert_eq!(chosen.get(), gets.map(server), "{words}");
        }
    }
}
