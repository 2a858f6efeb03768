//! The limit of concurrent calls, on a paused clock.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_limit::{ConcurrencyLimit, ConcurrencyLimitLayer, PermitStatus, Shed};
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

fn status(limit: &ConcurrencyLimit<MockService>) -> PermitStatus {
    limit.handle().status().server
}

/// Returns the numbers of calls in flight and in the queue.
fn counts(limit: &ConcurrencyLimit<MockService>) -> (usize, usize) {
    let PermitStatus {
        in_flight, waiting, ..
    } = status(limit);
    (in_flight, waiting)
}

fn request() -> ToolCall {
    call(&tool("x").build(), json!({}))
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_never_exceed_the_limit() {
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
    assert_eq!(counts(&limit), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_the_call_unsent() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1)
        .with_max_waiting(1)
        .layer(service.clone());
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(limit.clone().oneshot(request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(counts(&limit), (1, 1));

    let error = limit.clone().oneshot(request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(
        error.message().contains("1 are in flight and 1 wait"),
        "{error}"
    );
    assert_eq!(service.started(), 1);

    gate.open(2);
    running.await.unwrap();
    waiting.await.unwrap();
    assert_eq!(counts(&limit), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_leaves_the_queue_or_releases_its_permit() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service.clone());
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut first = Box::pin(limit.clone().oneshot(request()));
    let mut second = Box::pin(limit.clone().oneshot(request()));
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());

    drop(first);
    assert_eq!(status(&limit).waiting, 1);
    drop(running);
    // the permit goes to the call that still waits
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(counts(&limit), (1, 0));
    gate.open(1);
    second.await.unwrap();
    assert_eq!(status(&limit).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_permit_of_a_dropped_waiter_goes_to_the_next() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1).layer(service);
    let mut running = Box::pin(limit.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    let mut waiting = Box::pin(limit.clone().oneshot(request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(running); // assigns the permit, and the waiter is not polled again
    drop(waiting);
    assert_eq!(counts(&limit), (0, 0));
    gate.open(1);
    limit.oneshot(request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_left_at_the_deadline() {
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
    assert_eq!((service.started(), status(&limit).waiting), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_first_in_first_out() {
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
async fn the_permit_is_free_as_soon_as_the_result_is_there() {
    let limit = ConcurrencyLimitLayer::new(1).layer(MockService::counting());
    let mut done = Box::pin(limit.clone().oneshot(request()));
    assert!(done.as_mut().now_or_never().is_some());
    assert_eq!(
        status(&limit).in_flight,
        0,
        "although the future is still held"
    );
}

#[tokio::test(start_paused = true)]
async fn each_wrapped_service_has_a_limit_of_its_own() {
    let layer = ConcurrencyLimitLayer::new(0).with_max_waiting(0);
    let (service, _gate) = MockService::gated();
    let [one, other] = [layer.layer(service.clone()), layer.layer(service)];
    let mut running = Box::pin(one.clone().oneshot(request()));
    assert!(running.as_mut().now_or_never().is_none());
    assert_eq!((status(&one).in_flight, status(&other).in_flight), (1, 0));
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
async fn shed_oldest_refuses_the_call_that_waited_longest() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(1)
        .with_max_waiting(2)
        .with_shed(Shed::Oldest)
        .layer(service.clone());
    let running = begin(&limit, request());
    let [first, second, third] = [0; 3].map(|_| begin(&limit, request()));
    assert_eq!(status(&limit).waiting, 2);
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
    let status = status(&limit);
    assert_eq!(
        (service.started(), status.refused, status.in_flight),
        (3, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_of_size_0_refuses_the_new_call_with_either_shed() {
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
async fn a_tool_limit_leaves_permits_of_the_server_to_other_tools() {
    let (service, gate) = MockService::gated();
    let limit = ConcurrencyLimitLayer::new(3)
        .with_per_tool(2)
        .with_tool("only".parse().unwrap(), 1)
        .layer(service.clone());
    let of = |name: &str| call(&tool(name).build(), json!({}));
    let calls = [0; 4].map(|_| begin(&limit, of("x")));
    assert_eq!(
        status(&limit).in_flight,
        2,
        "two wait for the tool, not for the server"
    );
    let only = [0; 2].map(|_| begin(&limit, of("only")));
    assert_eq!(counts(&limit), (3, 0));
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
async fn a_call_that_would_miss_its_deadline_leaves_the_queue() {
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
    assert_eq!(status(&limit).expired, 1);
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
