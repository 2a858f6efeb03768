//! What a router reports to its listeners.

use crate::bed::{Bed, not_sent, read, received, refusing, server};
use callward_core::ErrorKind;
use callward_router::RouteEvent;
use callward_testkit::{call, tool};
use futures_util::FutureExt;
use serde_json::json;

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

    let nowhere = call(&tool("x").set("nowhere").build(), json!({}));
    bed.fail(nowhere).await;
    let [RouteEvent::RouteFailed { decision, error }] = &received(&mut listener)[..] else {
        panic!("one failure");
    };
    assert_eq!(*error, ErrorKind::NoEligibleServer);
    assert_eq!(decision.set.as_str(), "nowhere");

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
