//! The attempt timeout, on a paused clock.

use std::time::Duration;

use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_limit::AttemptTimeoutLayer;
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

/// A call with an attempt timeout of 20 s, ten times the estimated duration.
fn request() -> ToolCall {
    let slow = tool("slow").hint(|hints| hints.estimated_duration = Some(2000.0));
    call(&slow.build(), json!({}))
}

fn within(secs: u64) -> std::time::Instant {
    (Instant::now() + Duration::from_secs(secs)).into_std()
}

async fn run(service: &MockService, call: ToolCall) -> Result<ToolOutput, ToolError> {
    AttemptTimeoutLayer::new()
        .layer(service.clone())
        .oneshot(call)
        .await
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_after_the_timeout_of_its_plan() {
    let (service, _gate) = MockService::gated();
    let start = Instant::now();
    let error = run(&service, request()).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 20);
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.delivery(), Delivery::Unknown);
    assert_eq!(
        error.message(),
        "no answer and no progress within 20s (attempt timeout of 20s, at most 200s with progress); \
         no progress was reported"
    );
    assert_eq!(service.cancelled(), 1, "the server's call is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_sooner_deadline_ends_it_with_deadline_exceeded() {
    let (service, _gate) = MockService::gated();
    let start = Instant::now();
    let error = run(&service, request().with_deadline(within(7)))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::Unknown);
    for number in ["7s", "20s"] {
        assert!(error.message().contains(number), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_deadline_changes_nothing() {
    let (service, _gate) = MockService::gated();
    let error = run(&service, request().with_deadline(within(90)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_has_passed_is_not_sent() {
    let service = MockService::counting();
    let late = request().with_deadline(within(1));
    tokio::time::advance(Duration::from_secs(4)).await;
    let error = run(&service, late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(error.delivery(), Delivery::NotSent);
    assert!(error.message().contains("3s ago"), "{error}");
    assert_eq!(service.started(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_moment_of_the_timeout_is_passed_on() {
    let service = MockService::new(|_, _| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(ToolOutput::text("just in time"))
    });
    let output = run(&service, request()).await.unwrap();
    assert_eq!(output, ToolOutput::text("just in time"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_server_is_passed_on() {
    let fault = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "no");
    let service = MockService::sequence(vec![Err(fault)]);
    let error = run(&service, request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ServerFault);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exhausts_the_coop_budget_times_out() {
    // uses up tokio's cooperative budget in every poll
    let service = MockService::new(|_, _| async {
        loop {
            tokio::task::coop::consume_budget().await;
            if !tokio::task::coop::has_budget_remaining() {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        }
    });
    let error = run(&service, request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
