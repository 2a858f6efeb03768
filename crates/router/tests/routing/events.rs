//! What a router tells its listeners.

use std::sync::Arc;

use crate::bed::{Bed, counting, not_sent, refusing, server};
use callward_core::{Caller, ErrorKind, Principal, SessionId, ToolCall};
use callward_router::{RouteEvent, RouteListener, StrategyName};
use callward_testkit::{call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::ServiceExt;

fn read() -> ToolCall {
    call(&tool("read").read_only().build(), json!({}))
}

fn heard(listener: &mut RouteListener) -> Vec<RouteEvent> {
    std::iter::from_fn(|| listener.next().now_or_never().flatten()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_choice_and_each_failure_is_told() {
    let refusal = not_sent(ErrorKind::BreakerOpen);
    let bed = Bed::new(StrategyName::RoundRobin, vec![refusing("a", refusal)]);
    let router = bed.router();
    let mut listener = router.events();
    router.clone().oneshot(read()).await.unwrap_err();
    let [
        RouteEvent::RouteDecision(chosen),
        RouteEvent::RouteFailed { decision, error },
    ] = &heard(&mut listener)[..]
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

    let elsewhere = call(&tool("x").set("nowhere").build(), json!({}));
    router.clone().oneshot(elsewhere).await.unwrap_err();
    let [RouteEvent::RouteFailed { decision, error }] = &heard(&mut listener)[..] else {
        panic!("one failure");
    };
    assert_eq!(*error, ErrorKind::NoEligibleServer);
    assert_eq!(decision.set.as_str(), "nowhere");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_server_is_none_of_the_router() {
    let fault = not_sent(ErrorKind::ConnectFailed);
    let bed = Bed::new(StrategyName::RoundRobin, vec![refusing("a", fault)]);
    let router = bed.router();
    let mut listener = router.events();
    router.clone().oneshot(read()).await.unwrap_err();
    assert!(matches!(
        &heard(&mut listener)[..],
        [RouteEvent::RouteDecision(_)]
    ));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_read_keeps_no_call_waiting() {
    let bed = Bed::new(StrategyName::default(), vec![counting("a"), counting("b")]);
    let router = bed.router();
    let mut listener = router.events();
    for _ in 0..5_000 {
        // at once: the first poll answers
        let answer = router.clone().oneshot(read()).now_or_never();
        answer.unwrap().unwrap();
    }
    assert_eq!(bed.started("a") + bed.started("b"), 5_000);
    let missed = RouteEvent::Missed {
        events: 5_000 - 1024,
    };
    assert_eq!(listener.next().await, Some(missed));
    for _ in 0..1024 {
        let event = listener.next().await;
        assert!(matches!(event, Some(RouteEvent::RouteDecision(_))));
    }
    assert_eq!(listener.next().now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn all_routers_over_a_pool_tell_the_same_listeners() {
    let bed = Bed::new(StrategyName::default(), vec![counting("a")]);
    let mut listener = bed.pool.events().listen();
    for router in [bed.router(), bed.router().clone()] {
        router.oneshot(read()).await.unwrap();
    }
    assert_eq!(heard(&mut listener).len(), 2);
    drop(bed);
    assert_eq!(listener.next().await, None, "the pool is gone");
}

#[tokio::test(start_paused = true)]
async fn where_a_session_goes_is_told_on_the_same_stream() {
    let bed = Bed::new(StrategyName::Affinity, vec![counting("a"), counting("b")]);
    let mut listener = bed.pool.events().listen();
    let caller = Caller::new(Principal::new("ada")).with_session(SessionId::new("s-1"));
    let call = read().with_caller(Arc::new(caller));
    // to look is not a call: nothing is remembered, and nothing reported
    let home = bed.router().explain(&call).chosen;
    assert_eq!(heard(&mut listener), []);
    bed.send(call.clone()).await.unwrap();
    let heard = heard(&mut listener);
    let [
        RouteEvent::AffinitySet(set),
        RouteEvent::RouteDecision(decision),
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(
        (Some(&set.server), &decision.chosen),
        (home.as_ref(), &home)
    );
    let written = serde_json::to_value(&heard[0]).unwrap();
    assert_eq!(
        (&written["type"], &written["by"]),
        (&json!("affinitySet"), &json!("session"))
    );
    assert!(
        !written.to_string().contains("s-1"),
        "sessions are secrets: {written}"
    );
}
