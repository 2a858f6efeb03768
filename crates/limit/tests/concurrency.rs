//! The limit of calls at once.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;
use tollgate_core::{Delivery, ErrorKind, ToolCall, ToolOutput};
use tollgate_limit::ConcurrencyLimitLayer;
use tollgate_testkit::{MockService, call, tool};
use tower::{Layer, Service, ServiceExt};

fn request() -> ToolCall {
    call(&tool("x").build(), json!({}))
}

#[tokio::test(start_paused = true)]
async fn never_more_calls_at_once_than_allowed() {
    let service = MockService::new(|_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(ToolOutput::text("ok"))
    });
    let limit = ConcurrencyLimitLayer::new(3).layer(service.clone());
    let start = Instant::now();
    let answers = join_all((0..10).map(|_| limit.clone().oneshot(request()))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(service.peak(), 3);
    assert_eq!(start.elapsed().as_secs(), 4, "ten calls, three at a time");
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_polled_takes_no_place() {
    let service = MockService::counting();
    let mut limit = ConcurrencyLimitLayer::new(1).layer(service);
    let idle = limit.ready().await.unwrap().call(request());
    assert_eq!(limit.in_flight(), 0);
    assert!(limit.oneshot(request()).now_or_never().is_some());
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_without_sending() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1)
        .with_max_waiting(1)
        .layer(service.clone());
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(limit.clone().oneshot(request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!((limit.in_flight(), limit.waiting()), (1, 1));

    let error = limit.clone().oneshot(request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(
        error
            .message()
            .contains("1 calls of the server run and 1 wait"),
        "{error}"
    );
    assert_eq!(service.started(), 1);

    gate.open(2);
    running.await.unwrap();
    waiting.await.unwrap();
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_leaves_no_place_and_no_line_behind() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service.clone());
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut first = Box::pin(limit.clone().oneshot(request()));
    let mut second = Box::pin(limit.clone().oneshot(request()));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());

    drop(first);
    assert_eq!(limit.waiting(), 1);
    drop(running);
    // the place goes to the one that still waits
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!((limit.in_flight(), limit.waiting()), (1, 0));
    gate.open(1);
    second.await.unwrap();
    assert_eq!(limit.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_with_the_place_in_hand_passes_it_on() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service);
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(limit.clone().oneshot(request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(running); // hands the place over, and the waiter is not polled again
    drop(waiting);
    assert_eq!((limit.in_flight(), limit.waiting()), (0, 0));
    gate.open(1);
    limit.oneshot(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_deadline() {
    let (service, _gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service.clone());
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());

    let start = Instant::now();
    let deadline = (start + Duration::from_secs(2)).into_std();
    let error = limit
        .clone()
        .oneshot(request().with_deadline(deadline))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 2);
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert_eq!((service.started(), limit.waiting()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn first_come_first_served() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service.clone());
    let numbered = |n: u32| call(&tool("x").build(), json!({ "n": n }));
    let mut calls: Vec<_> = (0..5)
        .map(|n| Box::pin(limit.clone().oneshot(numbered(n))))
        .collect();
    for running in &mut calls {
        assert!(running.as_mut().now_or_never().is_none());
    }
    gate.open(5);
    join_all(calls.into_iter().rev()).await;
    let order: Vec<_> = service
        .seen()
        .iter()
        .map(|call| String::from_utf8_lossy(call.arguments()).into_owned())
        .collect();
    let expected: Vec<_> = (0..5).map(|n| json!({ "n": n }).to_string()).collect();
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn the_place_is_free_as_soon_as_the_answer_is_there() {
    let limit = ConcurrencyLimitLayer::new(1).layer(MockService::counting());
    let mut done = Box::pin(limit.clone().oneshot(request()));
    assert!(done.as_mut().now_or_never().is_some());
    assert_eq!(limit.in_flight(), 0, "although the future is still held");
}

#[tokio::test(start_paused = true)]
async fn each_wrapped_service_has_a_limit_of_its_own() {
    let layer = ConcurrencyLimitLayer::new(0).with_max_waiting(0);
    let (service, _gate) = MockService::gated();
    let [one, other] = [layer.layer(service.clone()), layer.layer(service)];
    let mut running = Box::pin(one.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    assert_eq!((one.in_flight(), other.in_flight()), (1, 0));
    assert!(one.oneshot(request()).await.is_err());
    assert!(other.oneshot(request()).now_or_never().is_none());
}
