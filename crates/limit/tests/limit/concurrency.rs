//! The limit of concurrent calls, on a paused clock.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_limit::{ConcurrencyLimit, ConcurrencyLimitLayer, PermitStatus, Shed};
use callward_testkit::{Gate, MockClient, MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;
type Limit = ConcurrencyLimit<MockService>;

fn status(limit: &Limit) -> PermitStatus {
    limit.handle().status().server
}

/// Returns the numbers of calls in flight and in the queue.
fn counts(limit: &Limit) -> (usize, usize) {
    (status(limit).in_flight, status(limit).waiting)
}

fn request() -> ToolCall {
    call(&tool("x").build(), json!({}))
}

/// Polls a call once: it passes, is refused, or waits in the queue.
fn begin(limit: &Limit, call: ToolCall) -> Answer {
    let mut answer: Answer = Box::pin(limit.clone().oneshot(call));
    match answer.as_mut().now_or_never() {
        Some(result) => Box::pin(std::future::ready(result)),
        None => answer,
    }
}

/// A limit before a service that answers as often as its gate is opened.
fn gated(layer: &ConcurrencyLimitLayer) -> (Limit, MockService, Gate) {
    let (service, gate) = MockService::gated();
    (layer.layer(service.clone()), service, gate)
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_never_exceed_the_limit_and_the_queue_is_in_order() {
    // a second, and one ends after the other
    let service = MockService::new(|_, n| async move {
        tokio::time::sleep(Duration::from_millis(1_000 + n as u64)).await;
        Ok(ToolOutput::text("ok"))
    });
    let limit = ConcurrencyLimitLayer::new(3).layer(service.clone());
    let start = Instant::now();
    let numbered = |n: usize| call(&tool("x").build(), json!(n));
    let mut calls: Vec<_> = (0..9).map(|n| begin(&limit, numbered(n))).collect();
    calls.reverse();
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(service.peak(), 3);
    assert_eq!(start.elapsed().as_secs(), 3, "nine calls, three at a time");
    assert_eq!(counts(&limit), (0, 0));
    for (n, call) in service.seen().iter().enumerate() {
        assert_eq!(call.arguments(), n.to_string().as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_the_newest_or_the_oldest_call() {
    for (shed, shows) in [(Shed::Newest, "2 wait"), (Shed::Oldest, "a newer call")] {
        let mut layer = ConcurrencyLimitLayer::new(1);
        (layer.max_waiting, layer.shed) = (2, shed);
        let (limit, service, gate) = gated(&layer);
        let mut calls: Vec<_> = (0..3).map(|_| begin(&limit, request())).collect();
        assert_eq!(counts(&limit), (1, 2));
        calls.push(begin(&limit, request()));
        let refused = match shed {
            Shed::Newest => calls.pop(),
            Shed::Oldest => Some(calls.remove(1)),
        };
        let error = refused.unwrap().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Overloaded);
        assert_eq!(error.delivery, Delivery::NotSent);
        assert!(error.message.contains(shows), "{error}");
        assert_eq!((service.started(), counts(&limit)), (1, (1, 2)));
        gate.open(3);
        assert!(join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!((status(&limit).refused, counts(&limit)), (1, (0, 0)));

        // without a queue, the newest in any case
        layer.max_waiting = 0;
        let (limit, ..) = gated(&layer);
        let _running = begin(&limit, request());
        let error = begin(&limit, request()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Overloaded, "{shed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_leaves_the_queue_or_releases_its_permit() {
    let (limit, _, gate) = gated(&ConcurrencyLimitLayer::new(1));
    let running = begin(&limit, request());
    let [first, mut second] = [0; 2].map(|_| begin(&limit, request()));
    drop(first);
    assert_eq!(status(&limit).waiting, 1);
    drop(running);
    // the permit goes to the call that still waits
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(counts(&limit), (1, 0));
    let waiting = begin(&limit, request());
    drop(second); // assigns the permit, and the waiter is not polled again
    drop(waiting);
    assert_eq!(counts(&limit), (0, 0));
    // free as soon as the result is there, although the future is still held
    gate.open(1);
    let mut done = Box::pin(limit.clone().oneshot(request()));
    assert!(done.as_mut().now_or_never().is_some());
    assert_eq!(counts(&limit), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_leaves_the_queue_when_it_would_miss_its_deadline() {
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    for (tool, left_after) in [(tool("x").build(), 5), (slow.build(), 3)] {
        let (limit, service, _gate) = gated(&ConcurrencyLimitLayer::new(1));
        let _running = begin(&limit, request());
        let start = Instant::now();
        let deadline = (start + Duration::from_secs(5)).into_std();
        let short = call(&tool, json!({})).with_deadline(deadline);
        let error = begin(&limit, short).await.unwrap_err();
        assert_eq!(start.elapsed().as_secs(), left_after);
        assert_eq!(error.kind, ErrorKind::Overloaded);
        assert_eq!(error.delivery, Delivery::NotSent);
        let status = status(&limit);
        assert_eq!((status.waiting, status.expired), (0, 1));
        assert_eq!(service.started(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn each_wrapped_service_has_a_limit_of_its_own() {
    let mut layer = ConcurrencyLimitLayer::new(0);
    layer.max_waiting = 0;
    let (service, _gate) = MockService::gated();
    let [one, other] = [layer.layer(service.clone()), layer.layer(service)];
    let _running = begin(&one, request());
    assert_eq!((status(&one).in_flight, status(&other).in_flight), (1, 0));
    assert!(one.oneshot(request()).await.is_err());
    assert!(other.oneshot(request()).now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_tool_limit_leaves_permits_of_the_server_to_other_tools() {
    let mut layer = ConcurrencyLimitLayer::new(3);
    layer.per_tool = Some(2);
    layer.tools.insert("only".parse().unwrap(), 1);
    let (limit, service, gate) = gated(&layer);
    let of = |name: &str| call(&tool(name).build(), json!({}));
    let calls = [0; 4].map(|_| begin(&limit, of("x")));
    // two wait for the tool, not for the server
    assert_eq!(status(&limit).in_flight, 2);
    let only = [0; 2].map(|_| begin(&limit, of("only")));
    assert_eq!(counts(&limit), (3, 0));
    let tools = limit.handle().status().tools;
    assert_eq!((tools["x"].waiting, tools["only"].waiting), (2, 1));
    gate.open(6);
    let all = calls.into_iter().chain(only);
    assert!(join_all(all).await.iter().all(Result::is_ok));
    assert_eq!(service.peak(), 3);
    let tools = limit.handle().status().tools;
    assert!(tools.values().all(|permits| permits.in_flight == 0));
}

#[tokio::test(start_paused = true)]
async fn a_drop_after_any_number_of_polls_leaks_no_permit() {
    for polls in 0..6 {
        let service = MockService::new(|_, _| async {
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("ok"))
        });
        let mut layer = ConcurrencyLimitLayer::new(1);
        layer.per_tool = Some(1);
        let limit = layer.layer(service);
        let mut calls = [0; 2].map(|_| Some(limit.clone().oneshot(request()).boxed()));
        for _ in 0..polls {
            for call in &mut calls {
                call.take_if(|call| call.now_or_never().is_some());
            }
        }
        // the one that waits first
        calls.reverse();
        calls.into_iter().for_each(drop);
        let status = limit.handle().status();
        for permits in status.tools.values().chain([&status.server]) {
            let held = (permits.in_flight, permits.waiting);
            assert_eq!(held, (0, 0), "{polls} polls");
        }
        limit.oneshot(request()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_is_asked_leaves_its_place_to_others() {
    let asks = MockService::new(|call, n| async move {
        if n == 0 {
            call.progress().unwrap().waits_for_person(true);
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text("ok"))
    });
    let limit = ConcurrencyLimitLayer::new(1).layer(asks);
    let (_client, call) = MockClient::make(request());
    let asking = begin(&limit, call);
    assert_eq!(counts(&limit), (0, 0));
    assert!(begin(&limit, request()).await.is_ok());
    drop(asking);
    assert_eq!(counts(&limit), (0, 0));
}
