//! Pinned calls, second attempts beside a first, and what the rule admits.

use callward_core::{ChosenServer, Delivery, ErrorKind, ToolCall};
use callward_router::StrategyName;
use callward_testkit::{ToolBuilder, call, tool};
use serde_json::json;

use crate::bed::{Bed, counting, members, not_sent, read, refusing, server, test_set, weight};

fn to(id: &str, builder: ToolBuilder) -> ToolCall {
    call(&builder.build(), json!({})).pinned_to(server(id))
}

#[tokio::test]
async fn a_pinned_call_goes_to_its_server_or_fails_as_that_does() {
    let get = || tool("get").read_only();
    let none = Some(ErrorKind::NoEligibleServer);
    let mut members = members("a heavy light=49 sick!open gone!not_offered");
    members.push(refusing("full", not_sent(ErrorKind::Overloaded)));
    let bed = Bed::new(StrategyName::default(), members);
    for (id, builder, fails) in [
        ("light", get(), None),
        ("heavy", get(), None),
        ("light", tool("send"), None),
        // its own breaker says best why not
        ("sick", get(), None),
        ("sick", tool("wipe").destructive(), none),
        ("gone", get(), none),
        ("full", get(), Some(ErrorKind::Overloaded)),
    ] {
        match fails {
            None => assert_eq!(bed.route_call(to(id, builder)).await, (id.into(), "pinned")),
            Some(kind) => assert_eq!(bed.fail(to(id, builder)).await.kind, kind, "{id}"),
        }
    }
    assert_eq!(bed.started("a"), 0, "never elsewhere");

    let pair = Bed::of("heavy light");
    let error = pair.fail(to("ghost", get())).await;
    assert_eq!(error.kind, ErrorKind::InvalidCall);
    let expected = "the call of tool \"get\" is pinned to server \"ghost\", \
                    which set \"test\" does not have: it has heavy, light";
    assert_eq!(error.message, expected);
}

#[tokio::test]
async fn the_servers_that_the_rule_admits_are_listed_as_they_were_added() {
    let bed = Bed::of("c=20 standby=0 b+caching a=90 sick!unreachable");
    let listed = |builder: ToolBuilder| {
        let ids = bed.router.route_by_annotation(&builder.build());
        ids.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let all = ["c", "standby", "b", "a"];
    assert_eq!(listed(tool("get").read_only()), all);
    assert_eq!(listed(tool("send")), all);
    assert_eq!(listed(tool("wipe").destructive()), ["b", "a"]);
    assert_eq!(listed(tool("put").idempotent()), ["b"]);
    // a change of one server changes no other one's place
    bed.pool.reweigh(&server("c"), weight(95)).unwrap();
    assert_eq!(listed(tool("get").read_only()), all);
    bed.pool.add_all(test_set(), [counting("a")]);
    assert_eq!(listed(tool("wipe").destructive()), ["c", "b", "a"]);

    drop(bed.pool.drain(&server("b")).unwrap());
    assert_eq!(listed(tool("put").idempotent()), ["c", "standby", "a"]);
    assert_eq!(listed(tool("get").set("nowhere")), [""; 0]);
}

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
        let mut members = members(words);
        if let Some(full) = members
            .iter_mut()
            .find(|one| one.server().as_str() == "full")
        {
            *full = refusing("full", not_sent(ErrorKind::Overloaded));
        }
        let bed = Bed::new(StrategyName::RoundRobin, members);
        // a read that `a` already has
        let (mut beside, chosen) = (read(), ChosenServer::default());
        beside.attempt_mut().avoid.push(server("a"));
        beside.attempt_mut().elsewhere_only = true;
        beside.attempt_mut().chosen = Some(chosen.clone());
        let error = bed.send(beside).await.err();
        assert_eq!(error.as_ref().map(|error| error.kind), fails, "{words}");
        let is_unsent = error.is_none_or(|error| error.delivery == Delivery::NotSent);
        assert!(is_unsent, "{words}");
        assert_eq!(chosen.get(), gets.map(server), "{words}");
    }
}
