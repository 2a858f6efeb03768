//! Calls meant for one server, and calls that may cost so much.

use crate::bed::{Bed, counting, not_sent, refusing, server, weight};
use callward_core::{ErrorKind, ServerId, ToolCall};
use callward_router::{ExclusionReason, StrategyName};
use callward_testkit::{ToolBuilder, call, tool};
use serde_json::json;

fn to(id: &str, builder: ToolBuilder) -> ToolCall {
    call(&builder.build(), json!({})).pinned_to(server(id))
}

fn pair() -> Bed {
    Bed::new(
        StrategyName::default(),
        vec![counting("heavy"), counting("light").with_weight(weight(49))],
    )
}

#[tokio::test]
async fn a_pinned_call_goes_to_its_server_whatever_the_strategy_says() {
    let bed = pair();
    for id in ["light", "heavy", "light"] {
        for builder in [tool("get").read_only(), tool("send")] {
            assert_eq!(bed.route_call(to(id, builder)).await, (id.into(), "pinned"));
        }
    }
}

#[tokio::test]
async fn a_pin_is_no_licence() {
    let bed = pair();
    let error = bed
        .send(to("light", tool("wipe").destructive()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert_eq!(
        error.message(),
        "the call of tool \"wipe\" is pinned to server \"light\", which has weight 49, below 50; \
         without the pin the router chooses among the set's servers"
    );
    assert_eq!((bed.started("light"), bed.started("heavy")), (0, 0));
    let wipe = to("heavy", tool("wipe").destructive());
    assert_eq!(bed.route_call(wipe).await.0, "heavy");
}

#[tokio::test]
async fn a_pinned_call_fails_where_its_server_does() {
    let bed = Bed::new(
        StrategyName::default(),
        vec![
            counting("a"),
            counting("sick").with_gate(|_| Err(ExclusionReason::BreakerOpen)),
            counting("gone").with_gate(|_| Err(ExclusionReason::NotOffered)),
            refusing("full", not_sent(ErrorKind::Overloaded)),
        ],
    );
    // its own gate says best why not
    bed.send(to("sick", tool("get").read_only())).await.unwrap();
    assert_eq!(bed.started("sick"), 1);
    for (id, builder, kind) in [
        (
            "sick",
            tool("wipe").destructive(),
            ErrorKind::NoEligibleServer,
        ),
        ("gone", tool("get").read_only(), ErrorKind::NoEligibleServer),
        ("full", tool("get").read_only(), ErrorKind::Overloaded),
    ] {
        let error = bed.send(to(id, builder)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{id}");
    }
    assert_eq!(bed.started("a"), 0, "and never elsewhere");

    let mut beside = to("a", tool("get").read_only());
    beside.attempt_mut().elsewhere_only = true;
    beside.attempt_mut().avoid.push(server("a"));
    let error = bed.send(beside).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    let mut again = to("a", tool("get").read_only());
    again.attempt_mut().avoid.push(server("a"));
    bed.send(again).await.unwrap();
}

#[tokio::test]
async fn a_pin_to_nobody_says_who_there_is() {
    let error = pair()
        .send(to("ghost", tool("get").read_only()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCall);
    assert_eq!(
        error.message(),
        "the call of tool \"get\" is pinned to server \"ghost\", which set \"test\" does not have: \
         it has heavy, light"
    );
}

/// Servers at which a call of cost 10 costs 5, 10 and 40.
fn dear() -> Bed {
    Bed::new(
        StrategyName::RoundRobin,
        vec![
            counting("half").with_cost_factor(0.5),
            counting("plain"),
            counting("dear").with_cost_factor(4.0),
        ],
    )
}

fn costing(cost: f64) -> ToolBuilder {
    tool("report")
        .read_only()
        .hint(|hints| hints.cost_hint = Some(cost))
}

#[tokio::test]
async fn what_costs_too_much_somewhere_goes_elsewhere() {
    let bed = dear();
    for (budget, reached) in [
        (None, ["half", "plain", "dear"].as_slice()),
        (Some(40.0), &["half", "plain", "dear"]),
        (Some(10.0), &["half", "plain"]),
        (Some(5.0), &["half"]),
    ] {
        let router = budget.map_or_else(
            || bed.router(),
            |budget| bed.router().with_cost_budget(budget),
        );
        let request = call(&costing(10.0).build(), json!({}));
        let names = |ids: Vec<ServerId>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(router.admitted(&request)), reached);
        // the call's own budget counts just as much, and the lower of the two
        if let Some(budget) = budget {
            let own = request.with_cost_budget(budget);
            assert_eq!(names(bed.router().admitted(&own)), reached);
            assert_eq!(
                names(bed.router().with_cost_budget(100.0).admitted(&own)),
                reached
            );
        }
    }
}

#[tokio::test]
async fn what_costs_too_much_everywhere_is_refused() {
    let bed = dear();
    let request = || call(&costing(10.0).build(), json!({}));
    let error = bed.send(request().with_cost_budget(4.0)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert_eq!(
        error.message(),
        "no server of set \"test\" may take tool \"report\": \
         half costs 5 a call, above the budget of 4; plain costs 10 a call, above the budget of 4; \
         dear costs 40 a call, above the budget of 4"
    );
    for odd in [f64::NAN, -1.0] {
        let error = bed.send(request().with_cost_budget(odd)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoEligibleServer, "{odd}");
        let router = bed.router().with_cost_budget(odd);
        assert_eq!(router.decide(&request()), None, "{odd}");
    }
    // its cost is unknown, or it costs nothing
    for free in [tool("get").read_only(), costing(0.0)] {
        let request = call(&free.build(), json!({})).with_cost_budget(0.0);
        bed.send(request).await.unwrap();
    }
}

#[tokio::test]
async fn a_budget_and_a_pin_both_count() {
    let bed = dear();
    let request = |id| to(id, costing(10.0)).with_cost_budget(10.0);
    assert_eq!(bed.route_call(request("plain")).await.0, "plain");
    let error = bed.send(request("dear")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    let why = "which costs 40 a call, above the budget of 10;";
    assert!(error.message().contains(why), "{}", error.message());
}

#[tokio::test]
async fn those_the_rule_admits_are_listed_in_the_order_they_were_given() {
    let bed = Bed::new(
        StrategyName::default(),
        vec![
            counting("c").with_weight(weight(20)),
            counting("standby").with_weight(weight(0)),
            counting("b").with_categories(["caching"]),
            counting("a").with_weight(weight(90)),
            counting("sick").with_gate(|_| Err(ExclusionReason::Unreachable)),
        ],
    );
    let listed = |builder: ToolBuilder| {
        let ids = bed.router().route_by_annotation(&builder.build());
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
    bed.pool.add(crate::bed::test_set(), counting("a"));
    assert_eq!(listed(tool("wipe").destructive()), ["c", "b", "a"]);

    drop(bed.pool.drain(&server("b")).unwrap());
    assert_eq!(listed(tool("put").idempotent()), ["c", "standby", "a"]);
    assert_eq!(listed(tool("get").set("nowhere")), [""; 0]);
}
