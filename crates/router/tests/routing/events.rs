//! What a router reports to its listeners.

use std::sync::Arc;

use crate::bed::{Bed, not_sent, read, refusing, server};
use callward_core::{Caller, ErrorKind, Principal, SessionId};
use callward_router::{RouteEvent, RouteListener, StrategyName};
use callward_testkit::{call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tokio::task::unconstrained;
use tower::ServiceExt;

fn received(listener: &mut RouteListener) -> Vec<RouteEvent> {
    // all of them, also beyond tokio's budget for a poll
    let next = || unconstrained(listener.next()).now_or_never().flatten();
    std::iter::from_fn(next).collect()
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
    assert_eq!(*error, ErrorKind::BreakerOpen);
    assert_eq!(decision.chosen, None);
    assert_eq!(
        (decision.refused_before, decision.reason),
        (1, "every server refused")
    );

    bed.fail(call(&tool("x").set("nowhere").build(), json!({})))
        .await;
    let [RouteEvent::RouteFailed { decision, error }] = &received(&mut listener)[..] else {
        panic!("one failure");
    };
    assert_eq!(*error, ErrorKind::NoEligibleServer);
    assert_eq!(decision.set.as_str(), "nowhere");

    // a failure of the server is not one of the router
    let bed = Bed::one(refusing("a", not_sent(ErrorKind::ConnectFailed)));
    let mut listener = bed.router().events();
    bed.fail(read()).await;
    let events = received(&mut listener);
    assert!(matches!(&events[..], [RouteEvent::RouteDecision(_)]));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_read_keeps_no_call_waiting() {
    let bed = Bed::of("a b");
    let mut listener = bed.router().events();
    for _ in 0..5_000 {
        // at once: the first poll answers
        bed.send(read()).now_or_never().unwrap().unwrap();
    }
    let missed = RouteEvent::Missed {
        events: 5_000 - 1024,
    };
    assert_eq!(listener.next().await, Some(missed));
    let rest = received(&mut listener);
    assert_eq!(rest.len(), 1024);
    let is_decision = |event: &RouteEvent| matches!(event, RouteEvent::RouteDecision(_));
    assert!(rest.iter().all(is_decision));
}

#[tokio::test(start_paused = true)]
async fn all_routers_over_a_pool_report_to_the_same_listeners() {
    let bed = Bed::of("a");
    let mut listener = bed.pool.events().listen();
    for router in [bed.router(), bed.router().clone()] {
        router.oneshot(read()).await.unwrap();
    }
    assert_eq!(received(&mut listener).len(), 2);
    drop(bed);
    assert_eq!(listener.next().await, None, "the pool is gone");
}

#[tokio::test(start_paused = true)]
async fn where_a_session_goes_is_reported_on_the_same_stream() {
    let bed = Bed::new(StrategyName::Affinity, crate::bed::members("a b"));
    let mut listener = bed.pool.events().listen();
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new("s-1"));
    let call = read().with_caller(Arc::new(caller));
    // to explain is not to call: nothing is remembered, and nothing reported
    let home = bed.router().explain(&call).chosen;
    assert_eq!(received(&mut listener), []);
    bed.send(call.clone()).await.unwrap();
    let events = received(&mut listener);
    let [
        RouteEvent::AffinitySet(set),
        RouteEvent::RouteDecision(decision),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (Some(&set.server), &decision.chosen),
        (home.as_ref(), &home)
    );
    let written = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(
        (&written["type"], &written["by"]),
        (&json!("affinitySet"), &json!("session"))
    );
    assert!(
        !written.to_string().contains("s-1"),
        "sessions are secrets: {written}"
    );
}
