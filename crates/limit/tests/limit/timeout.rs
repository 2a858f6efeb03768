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
async fn an_attempt_ends_after_its_timeout_or_at_a_sooner_deadline() {
    let by_timeout = "no answer and no progress within 20s";
    let by_deadline = "no answer before the call's deadline, after 7s";
    for (deadline, secs, kind, why) in [
        (None, 20, ErrorKind::Timeout, by_timeout),
        (Some(90), 20, ErrorKind::Timeout, by_timeout),
        (Some(7), 7, ErrorKind::DeadlineExceeded, by_deadline),
    ] {
        let (service, _gate) = MockService::gated();
        let start = Instant::now();
        let call = match deadline {
            Some(secs) => request().with_deadline(within(secs)),
            None => request(),
        };
        let error = run(&service, call).await.unwrap_err();
        assert_eq!(start.elapsed().as_secs(), secs);
        assert_eq!((error.kind(), error.delivery()), (kind, Delivery::Unknown));
        let rest = "(attempt timeout of 20s, at most 200s with progress); no progress was reported";
        assert_eq!(error.message(), format!("{why} {rest}"));
        assert_eq!(service.cancelled(), 1, "the server's call is dropped");
    }
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
async fn what_the_server_answers_in_time_is_passed_on() {
    let service = MockService::new(|_, n| async move {
        // at the moment of the timeout
        tokio::time::sleep(Duration::from_secs(20)).await;
        match n {
            1 => Ok(ToolOutput::text("just in time")),
            _ => Err(ToolError::new(
                ErrorKind::ServerFault,
                Delivery::Answered,
                "no",
            )),
        }
    });
    let output = run(&service, request()).await.unwrap();
    assert_eq!(output, ToolOutput::text("just in time"));
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
