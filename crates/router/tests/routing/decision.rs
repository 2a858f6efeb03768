//! What a record, `explain` and listeners learn of how a server was chosen.

use std::sync::Arc;

use callward_core::{CallRecord, Delivery, ErrorKind, RouteDecision, ToolCall};
use callward_router::{RouteEvent, StrategyName};
use callward_testkit::{call, tool};
use futures_util::FutureExt;
use serde_json::json;

use crate::bed::{Bed, counting, delete, not_sent, read, received, refusing, server};

/// Five servers, of which one is sick, one light and one a standby.
const MIXED: &str = "a=80 b=60 sick!unreachable light=10 standby=0";

fn recorded(call: ToolCall) -> (ToolCall, Arc<CallRecord>) {
    let record = Arc::new(CallRecord::new());
    (call.with_record(record.clone()), record)
}

fn routes(record: &CallRecord) -> Vec<Arc<RouteDecision>> {
    let decisions = record.facts().decisions.into_iter();
    decisions.filter_map(|kept| kept.route).collect()
}

fn words(decision: &RouteDecision) -> Vec<String> {
    let candidates = decision.candidates.iter();
    candidates.map(ToString::to_string).collect()
}

/// Sends a call, and returns the server that saw it.
async fn seen(bed: &Bed, call: ToolCall) -> &'static str {
    let ids = ["a", "b", "sick", "light", "standby"];
    let before = ids.map(|id| bed.started(id));
    bed.send(call).await.unwrap();
    let saw = |(id, before): &(&str, usize)| bed.started(id) > *before;
    ids.into_iter().zip(before).find(saw).unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_decision_has_the_rule_and_what_speaks_against_each_server() {
    let bed = Bed::in_turn(MIXED);
    let (call, record) = recorded(delete());
    bed.send(call).await.unwrap();
    let decision = &routes(&record)[0];
    assert_eq!(
        [decision.set.as_str(), decision.tool.as_str()],
        ["test", "delete"]
    );
    assert_eq!((decision.attempt, decision.beside), (1, false));
    assert_eq!((decision.servers, decision.eligible), (5, 3));
    assert_eq!(decision.strategy, "round_robin");
    assert_eq!(decision.rule.min_weight, Some(50));
    let rule = decision.rule.to_string();
    assert_eq!(rule, "only healthy servers of weight 50 or more");
    let lighter = "light (10, too_light), standby (0, too_light)";
    let expected = format!("a (80), b (60), sick (50, unreachable), {lighter}");
    assert_eq!(words(decision).join(", "), expected);
    // the sick one is not an alternate: what cannot be undone is not tried there
    assert_eq!(decision.alternates, [server("b")]);
}

#[tokio::test(start_paused = true)]
async fn each_server_asked_is_a_decision_that_names_the_next_ones() {
    for strategy in StrategyName::ALL.iter().copied() {
        for seed in 0..20 {
            fastrand::seed(seed);
            let refusal = not_sent(ErrorKind::Overloaded);
            let refusing = ["a", "b", "c"].map(|id| refusing(id, refusal.clone()));
            let bed = Bed::new(strategy, refusing.into());
            let (call, record) = recorded(read());
            bed.send(call).await.unwrap_err();
            let decisions = routes(&record);
            let asked: Vec<_> = decisions.iter().filter_map(|d| d.chosen.clone()).collect();
            assert_eq!(asked.len(), 3, "{strategy:?}");
            for (place, decision) in decisions.iter().take(3).enumerate() {
                assert_eq!(decision.alternates, asked[place + 1..], "{strategy:?}");
                assert_eq!(decision.refused_before as usize, place);
            }
            let [.., third, last] = &decisions[..] else {
                panic!("four decisions")
            };
            assert_eq!(third.reason, "fallback: first choice refused");
            let refused = |word: &String| word.ends_with(" (50, refused)");
            assert!(words(third)[1..].iter().all(refused));
            assert_eq!((&last.chosen, last.reason), (&None, "every server refused"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_server_has_a_decision_too() {
    let nowhere = call(&tool("x").set("nowhere").build(), json!({}));
    let none = "set \"test\" may take tool \"delete\": it has none";
    let no_set = "no replica set \"nowhere\"";
    let (unfit, held) = ("no server may take it", "a has a breaker that");
    for (servers, call, reason, candidates, says) in [
        ("a!held", delete(), unfit, "a (50, held_open)", held),
        ("", delete(), "no server", "", none),
        ("a", nowhere, "no such replica set", "", no_set),
    ] {
        let (call, record) = recorded(call);
        let error = Bed::of(servers).fail(call).await;
        assert_eq!(error.kind, ErrorKind::NoEligibleServer);
        assert_eq!(error.delivery, Delivery::NotSent);
        assert!(error.message.contains(says), "{error}");
        let decisions = routes(&record);
        assert_eq!(decisions.len(), 1);
        assert_eq!((&decisions[0].chosen, decisions[0].reason), (&None, reason));
        assert_eq!(words(&decisions[0]).concat(), candidates);
        assert_eq!(record.facts().server, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_about_a_large_set_has_a_bounded_size() {
    let members = (0..1000).map(|n| counting(&format!("s{n}")));
    let bed = Bed::new(StrategyName::PeakEwma, members.collect());
    let (call, record) = recorded(read());
    bed.send(call).await.unwrap();
    let decision = &routes(&record)[0];
    assert_eq!((decision.servers, decision.eligible), (1000, 1000));
    assert_eq!(decision.candidates.len(), 8);
    assert_eq!(decision.alternates.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_record_for_counting_gets_the_server_and_no_decision() {
    let record = Arc::new(CallRecord::for_counting());
    let call = delete().with_record(record.clone());
    Bed::of(MIXED).send(call).await.unwrap();
    assert!(record.facts().server.is_some());
    assert!(routes(&record).is_empty());
}

/// Sends a mix of calls, and returns which server got each.
async fn route(
    strategy: StrategyName,
    watch: impl Fn(&Bed, ToolCall) -> ToolCall,
) -> Vec<&'static str> {
    fastrand::seed(7);
    let bed = Bed::by(strategy, MIXED);
    let mut routed = Vec::new();
    for n in 0..60 {
        let call = watch(&bed, if n % 4 == 0 { delete() } else { read() });
        routed.push(seen(&bed, call).await);
    }
    routed
}

/// The record names the server that saw the call, `explain` the one that is going to, and neither
/// changes a choice.
#[tokio::test(start_paused = true)]
async fn a_record_and_explain_tell_the_truth_and_change_no_choice() {
    for strategy in StrategyName::ALL.iter().copied() {
        let unwatched = route(strategy, |_, call| call).await;
        let explained = parking_lot::Mutex::new(Vec::new());
        let routed = route(strategy, |bed, call| {
            let seed = fastrand::get_seed();
            let decision = bed.router.explain(&call);
            fastrand::seed(seed);
            let (call, record) = recorded(call);
            explained.lock().push((decision, record));
            call
        });
        assert_eq!(routed.await, unwatched, "{strategy:?}");
        for ((explained, record), id) in explained.into_inner().into_iter().zip(&unwatched) {
            let [decision] = &routes(&record)[..] else {
                panic!("one decision")
            };
            assert_eq!(**decision, explained, "{strategy:?}");
            assert_eq!(decision.chosen, Some(server(id)), "{strategy:?}");
            assert_eq!(decision.candidates[0].server, server(id), "{strategy:?}");
            assert_eq!(record.facts().server.unwrap().0, server(id), "{strategy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_choice_and_each_failure_of_the_router_is_an_event() {
    let refusal = not_sent(ErrorKind::BreakerOpen);
    let bed = Bed::one(refusing("a", refusal));
    let mut listener = bed.pool.events().listen();
    bed.fail(read()).await;
    let [
        RouteEvent::RouteDecision(chosen),
        RouteEvent::RouteFailed { decision, error },
    ] = &received(&mut listener)[..]
    else {
        panic!("one choice, and that no server is left");
    };
    assert_eq!(chosen.chosen, Some(server("a")));
    assert_eq!((&decision.chosen, *error), (&None, ErrorKind::BreakerOpen));
    assert_eq!(decision.reason, "every server refused");

    // a failure of the server is not one of the router
    let bed = Bed::one(refusing("a", not_sent(ErrorKind::ConnectFailed)));
    let mut listener = bed.router.events();
    bed.fail(read()).await;
    let events = received(&mut listener);
    assert!(matches!(&events[..], [RouteEvent::RouteDecision(_)]));
    drop(bed);
    assert_eq!(listener.next().await, None, "the pool is gone");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_read_keeps_no_call_waiting() {
    let bed = Bed::of("a b");
    let mut listener = bed.router.events();
    for _ in 0..5_000 {
        // at once: the first poll answers
        bed.send(read()).now_or_never().unwrap().unwrap();
    }
    let events = 5_000 - 1024;
    assert_eq!(listener.next().await, Some(RouteEvent::Missed { events }));
    let rest = received(&mut listener);
    assert_eq!(rest.len(), 1024);
    let is_decision = |event: &RouteEvent| matches!(event, RouteEvent::RouteDecision(_));
    assert!(rest.iter().all(is_decision));
}
