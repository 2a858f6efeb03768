//! What a record reports how a server was chosen.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;

use crate::bed::{Bed, counting, not_sent, refusing, server, weight};
use callward_core::{CallRecord, ErrorKind, RouteDecision, ToolCall};
use callward_router::{ExclusionReason, Member, StrategyName};
use callward_testkit::{MockService, call, tool};
use serde_json::json;

const STRATEGIES: [StrategyName; 4] = [
    StrategyName::LeastConnections,
    StrategyName::PeakEwma,
    StrategyName::RoundRobin,
    StrategyName::Weighted,
];

fn recorded(call: ToolCall) -> (ToolCall, Arc<CallRecord>) {
    let record = Arc::new(CallRecord::new());
    (call.with_record(record.clone()), record)
}

fn read() -> ToolCall {
    call(&tool("read").read_only().build(), json!({}))
}

fn delete() -> ToolCall {
    call(&tool("delete").destructive().build(), json!({}))
}

fn words(decision: &RouteDecision) -> Vec<String> {
    let candidates = decision.candidates.iter();
    candidates.map(ToString::to_string).collect()
}

/// Five servers, of which one is sick, one light and one a standby.
fn mixed() -> Vec<Member<MockService>> {
    vec![
        counting("a").with_weight(weight(80)),
        counting("b").with_weight(weight(60)),
        counting("sick")
            .with_weight(weight(50))
            .with_gate(|_| Err(ExclusionReason::Unreachable)),
        counting("light").with_weight(weight(10)),
        counting("standby").with_weight(weight(0)),
    ]
}

#[tokio::test(start_paused = true)]
async fn it_names_the_server_that_saw_the_call() {
    for strategy in STRATEGIES {
        let bed = Bed::new(strategy, mixed());
        for n in 0..40 {
            let (call, record) = recorded(if n % 3 == 0 { delete() } else { read() });
            let before: Vec<_> = ["a", "b", "sick", "light", "standby"]
                .map(|id| (id, bed.started(id)))
                .into();
            bed.send(call).await.unwrap();
            let saw: Vec<_> = before
                .into_iter()
                .filter(|(id, calls)| bed.started(id) > *calls)
                .collect();
            let decisions = record.routes();
            assert_eq!((saw.len(), decisions.len()), (1, 1));
            assert_eq!(decisions[0].chosen, Some(server(saw[0].0)));
            assert_eq!(decisions[0].candidates[0].server, server(saw[0].0));
            assert_eq!(record.server().unwrap().0, server(saw[0].0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_says_what_the_rule_demands_and_what_speaks_against_each() {
    let bed = Bed::new(StrategyName::RoundRobin, mixed());
    let (call, record) = recorded(delete());
    bed.send(call).await.unwrap();
    let decision = &record.routes()[0];
    assert_eq!(decision.set.as_str(), "test");
    assert_eq!(decision.tool.as_str(), "delete");
    assert_eq!((decision.attempt, decision.beside), (1, false));
    assert_eq!((decision.servers, decision.eligible), (5, 3));
    assert_eq!(decision.strategy, "round_robin");
    assert_eq!(decision.rule.min_weight, Some(50));
    assert_eq!(
        decision.rule.to_string(),
        "only healthy servers of weight 50 or more"
    );
    assert_eq!(
        words(decision),
        [
            "a (80)",
            "b (60)",
            "sick (50, unreachable)",
            "light (10, too_light)",
            "standby (0, too_light)"
        ]
    );
    // the sick one is not an alternate: what cannot be undone is not tried there
    assert_eq!(decision.alternates, [server("b")]);
}

#[tokio::test(start_paused = true)]
async fn each_server_asked_is_a_decision_of_its_own() {
    let refusal = not_sent(ErrorKind::BreakerOpen);
    let bed = Bed::new(
        StrategyName::RoundRobin,
        vec![
            refusing("a", refusal.clone()),
            refusing("b", refusal),
            counting("c"),
        ],
    );
    let (call, record) = recorded(read());
    bed.send(call).await.unwrap();
    let decisions = record.routes();
    let reported: Vec<_> = decisions
        .iter()
        .map(|d| (d.chosen.as_ref().unwrap().as_str(), d.refused_before))
        .collect();
    assert_eq!(reported, [("a", 0), ("b", 1), ("c", 2)]);
    assert_eq!(
        words(&decisions[2]),
        ["c (50)", "a (50, refused)", "b (50, refused)"]
    );
    assert_eq!(decisions[2].reason, "fallback: first choice refused");
    assert!(decisions[2].alternates.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_alternate_is_who_is_asked_next() {
    for strategy in STRATEGIES {
        for seed in 0..20 {
            fastrand::seed(seed);
            let refusal = not_sent(ErrorKind::Overloaded);
            let members = ["a", "b", "c", "d"];
            let members = members.map(|id| refusing(id, refusal.clone()));
            let bed = Bed::new(strategy, members.into());
            let (call, record) = recorded(read());
            bed.send(call).await.unwrap_err();
            let decisions = record.routes();
            let asked: Vec<_> = decisions.iter().filter_map(|d| d.chosen.clone()).collect();
            assert_eq!(asked.len(), 4, "{strategy:?}");
            for (place, decision) in decisions.iter().take(4).enumerate() {
                assert_eq!(decision.alternates, asked[place + 1..], "{strategy:?}");
            }
            let last = decisions.last().unwrap();
            assert_eq!((&last.chosen, last.reason), (&None, "every server refused"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn that_nobody_may_take_a_call_is_a_decision_too() {
    let sick = || vec![counting("a").with_gate(|_| Err(ExclusionReason::Unreachable))];
    let cases = [
        (sick(), "no server may take it", vec!["a (50, unreachable)"]),
        (vec![], "no server", vec![]),
    ];
    for (members, reason, candidates) in cases {
        let bed = Bed::new(StrategyName::default(), members);
        let (call, record) = recorded(delete());
        bed.send(call).await.unwrap_err();
        let decisions = record.routes();
        assert_eq!(decisions.len(), 1);
        assert_eq!((&decisions[0].chosen, decisions[0].reason), (&None, reason));
        assert_eq!(words(&decisions[0]), candidates);
        assert_eq!(record.server(), None);
    }
    let (call, record) = recorded(call(&tool("x").set("nowhere").build(), json!({})));
    let bed = Bed::new(StrategyName::default(), sick());
    bed.send(call).await.unwrap_err();
    assert_eq!(record.routes()[0].reason, "no such replica set");
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_large_set_is_little() {
    let members = (0..1000).map(|n| counting(&format!("s{n}")));
    let bed = Bed::new(StrategyName::PeakEwma, members.collect());
    let (call, record) = recorded(read());
    bed.send(call).await.unwrap();
    let decision = &record.routes()[0];
    assert_eq!((decision.servers, decision.eligible), (1000, 1000));
    assert_eq!(decision.candidates.len(), RouteDecision::MOST_CANDIDATES);
    assert_eq!(decision.alternates.len(), RouteDecision::MOST_ALTERNATES);
}

#[tokio::test(start_paused = true)]
async fn a_record_for_counting_gets_the_server_and_no_decision() {
    let bed = Bed::new(StrategyName::default(), mixed());
    let record = Arc::new(CallRecord::for_counting());
    bed.send(delete().with_record(record.clone()))
        .await
        .unwrap();
    assert!(record.server().is_some());
    assert!(record.routes().is_empty());
}

/// Sends a mix of calls, and returns who got each.
async fn route(strategy: StrategyName, watch: impl Fn(&Bed, ToolCall) -> ToolCall) -> Vec<String> {
    fastrand::seed(7);
    let bed = Bed::new(strategy, mixed());
    let mut routed = Vec::new();
    for n in 0..60 {
        let call = watch(&bed, if n % 4 == 0 { delete() } else { read() });
        let ids = ["a", "b", "sick", "light", "standby"];
        let before = ids.map(|id| bed.started(id));
        bed.send(call).await.unwrap();
        let (id, _) = ids
            .into_iter()
            .zip(before)
            .find(|(id, before)| bed.started(id) > *before)
            .unwrap();
        routed.push(id.to_owned());
    }
    routed
}

#[tokio::test(start_paused = true)]
async fn to_be_told_changes_no_choice() {
    for strategy in STRATEGIES {
        let unwatched = route(strategy, |_, call| call).await;
        let recorded = route(strategy, |_, call| recorded(call).0).await;
        assert_eq!(unwatched, recorded, "{strategy:?}");
        let explained = route(strategy, |bed, call| {
            let seed = fastrand::get_seed();
            let decision = bed.router().explain(&call);
            assert!(decision.chosen.is_some());
            fastrand::seed(seed);
            call
        })
        .await;
        assert_eq!(unwatched, explained, "{strategy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_explained_who_would_get_a_call_and_then_gets_it() {
    for strategy in STRATEGIES {
        fastrand::seed(3);
        let bed = Bed::new(strategy, mixed());
        let router = bed.router();
        for _ in 0..10 {
            let seed = fastrand::get_seed();
            let expected = router.explain(&read());
            fastrand::seed(seed);
            let (call, record) = recorded(read());
            bed.send(call).await.unwrap();
            assert_eq!(*record.routes()[0], expected, "{strategy:?}");
        }
        let total: usize = ["a", "b", "sick", "light", "standby"]
            .map(|id| bed.started(id))
            .iter()
            .sum();
        assert_eq!(total, 10, "to explain sends nothing");
    }
}
