//! The limit of calls at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_limit::{AdaptiveConfig, ConcurrencyLimit, ConcurrencyLimitLayer, Shed};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

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

fn begin(limit: &ConcurrencyLimit<MockService>, call: ToolCall) -> Answer {
    let mut answer: Answer = Box::pin(limit.clone().oneshot(call));
    match answer.as_mut().now_or_never() {
        Some(result) => Box::pin(std::future::ready(result)),
        None => answer,
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_line_may_refuse_who_has_waited_longest() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1)
        .with_max_waiting(2)
        .with_shed(Shed::Oldest)
        .layer(service.clone());
    let running = begin(&limit, request());
    let [first, second, third] = [0; 3].map(|_| begin(&limit, request()));
    assert_eq!(limit.waiting(), 2);
    let error = first.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(error.message().contains("a newer call"), "{error}");
    gate.open(3);
    assert!(
        join_all([running, second, third])
            .await
            .iter()
            .all(Result::is_ok)
    );
    let status = limit.handle().status().server;
    assert_eq!(
        (service.started(), status.refused, status.in_flight),
        (3, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_without_room_refuses_the_newest_whoever_is_to_be_shed() {
    let (service, _gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1)
        .with_max_waiting(0)
        .with_shed(Shed::Oldest)
        .layer(service);
    let _running = begin(&limit, request());
    let error = begin(&limit, request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_places_of_its_own_takes_no_more_of_the_servers() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(3)
        .with_per_tool(2)
        .with_tool("only".parse().unwrap(), 1)
        .layer(service.clone());
    let of = |name: &str| call(&tool(name).build(), json!({}));
    let calls = [0; 4].map(|_| begin(&limit, of("x")));
    assert_eq!(
        limit.in_flight(),
        2,
        "two wait for the tool, not for the server"
    );
    let only = [0; 2].map(|_| begin(&limit, of("only")));
    assert_eq!((limit.in_flight(), limit.waiting()), (3, 0));
    let status = limit.handle().status();
    assert_eq!(
        (status.tools["x"].waiting, status.tools["only"].waiting),
        (2, 1)
    );
    gate.open(6);
    let all = calls.into_iter().chain(only);
    assert!(join_all(all).await.iter().all(Result::is_ok));
    assert_eq!(service.peak(), 3);
    let status = limit.handle().status();
    assert!(status.tools.values().all(|places| places.in_flight == 0));
}

#[tokio::test(start_paused = true)]
async fn who_could_not_be_answered_in_time_any_more_waits_no_longer() {
    let (service, _gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service);
    let _running = begin(&limit, request());
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    let deadline = Instant::now() + Duration::from_secs(5);
    let short = call(&slow.build(), json!({})).with_deadline(deadline.into_std());
    let start = Instant::now();
    let error = begin(&limit, short).await.unwrap_err();
    assert_eq!(
        (start.elapsed().as_secs(), error.kind()),
        (3, ErrorKind::Overloaded)
    );
    assert_eq!(limit.handle().status().server.expired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_drop_after_any_number_of_polls_leaks_no_place() {
    for polls in 0..6 {
        let service = MockService::new(|_, _| async {
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("ok"))
        });
        let limit = ConcurrencyLimitLayer::new(1)
            .with_per_tool(1)
            .layer(service);
        let mut running = Some(limit.clone().oneshot(request()).boxed());
        let mut waiting = Some(limit.clone().oneshot(request()).boxed());
        for _ in 0..polls {
            for call in [&mut running, &mut waiting] {
                if call
                    .as_mut()
                    .is_some_and(|call| call.now_or_never().is_some())
                {
                    *call = None;
                }
            }
        }
        drop(waiting);
        drop(running);
        let status = limit.handle().status();
        let places = status.tools.values().chain([&status.server]);
        for places in places {
            assert_eq!((places.in_flight, places.waiting), (0, 0), "{polls} polls");
        }
        limit.oneshot(request()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_adaptive_limit_backs_off_under_timeouts_and_recovers() {
    let down = Arc::new(AtomicBool::new(true));
    let seen = down.clone();
    let service = MockService::new(move |_, _| {
        let down = seen.load(Ordering::Relaxed);
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if down {
                let error = ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer");
                return Err(error);
            }
            Ok(ToolOutput::text("ok"))
        }
    });
    let config = AdaptiveConfig::default().between(4, 40);
    let layer = ConcurrencyLimitLayer::new(32)
        .with_adaptive(config)
        .unwrap();
    let limit = layer.layer(service.clone());
    join_all((0..300).map(|_| limit.clone().oneshot(request()))).await;
    assert_eq!(limit.handle().status().server.limit, 4);
    down.store(false, Ordering::Relaxed);
    let answers = join_all((0..900).map(|_| limit.clone().oneshot(request()))).await;
    assert!(answers.iter().all(Result::is_ok));
    let places = limit.handle().status().server;
    assert!((20..=40).contains(&places.limit), "{places:?}");
    assert_eq!((places.in_flight, places.waiting), (0, 0));
}
