//! What is retried, and what becomes of what is not.

use std::error::Error;
use std::sync::Arc;

use callward_core::{
    CallPlan, CallRecord, Delivery, ErrorKind, Profile, RetryRule, ServerId, Tool, ToolError,
    ToolOutput,
};
use callward_retry::{Retry, RetryConfig, RetryLayer, RetryPolicy};
use callward_testkit::{MockService, call, tool};
use proptest::prelude::*;
use serde_json::json;
use tower::{ServiceBuilder, ServiceExt};

fn failed(kind: ErrorKind, delivery: Delivery) -> Result<ToolOutput, ToolError> {
    Err(ToolError::new(kind, delivery, "scripted"))
}

fn answer() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::text("done"))
}

fn retry(inner: MockService) -> Retry<MockService> {
    ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service(inner)
}

fn read() -> Arc<Tool> {
    tool("get_order").read_only().build()
}

fn write() -> Arc<Tool> {
    tool("pay").build()
}

/// A write that the operator lets go elsewhere while it certainly was not sent.
fn only_unsent() -> Arc<Tool> {
    let write = write();
    let mut plan = CallPlan::derive(write.resolved(), &Profile::standard());
    plan.retry = RetryRule::OnlyUnsent;
    Arc::new(Tool::new(
        write.set().clone(),
        write.definition().clone(),
        write.resolved().clone(),
        plan,
    ))
}

#[tokio::test(start_paused = true)]
async fn a_flaky_read_succeeds_on_the_third_attempt() {
    let mock = MockService::sequence(vec![
        failed(ErrorKind::Timeout, Delivery::Unknown),
        failed(ErrorKind::ServerFault, Delivery::Answered),
        answer(),
    ]);
    let output = retry(mock.clone())
        .oneshot(call(&read(), json!({})))
        .await
        .unwrap();
    assert_eq!(output.to_text(), "done");
    let numbers: Vec<_> = mock.seen().iter().map(|c| c.attempt().number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_keeps_failing_is_given_up_on_after_three_attempts() {
    let mock =
        MockService::new(|_, _| async { failed(ErrorKind::ConnectFailed, Delivery::NotSent) });
    let error = retry(mock.clone())
        .oneshot(call(&read(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(mock.started(), 3);
    assert_eq!(
        (error.kind(), error.attempts()),
        (ErrorKind::ConnectFailed, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_nested_retry_does_not_multiply_the_attempts() {
    let mock =
        MockService::new(|_, _| async { failed(ErrorKind::ConnectFailed, Delivery::NotSent) });
    let nested = Retry::new(retry(mock.clone()), RetryPolicy::default());
    let error = nested.oneshot(call(&read(), json!({}))).await.unwrap_err();
    assert_eq!((mock.started(), error.attempts()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_retry_avoids_the_servers_that_failed() {
    let ids = ["a", "b"].map(|id| ServerId::new(id).unwrap());
    let script = ids.clone();
    let mock = MockService::new(move |_, n| {
        let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "refused");
        let result = match script.get(n - 1) {
            Some(id) => Err(error.with_server(id.clone())),
            None => answer(),
        };
        async { result }
    });
    retry(mock.clone())
        .oneshot(call(&read(), json!({})))
        .await
        .unwrap();
    let avoided: Vec<_> = mock
        .seen()
        .iter()
        .map(|c| c.attempt().avoid.len())
        .collect();
    assert_eq!(avoided, [0, 1, 2]);
    assert_eq!(mock.seen()[2].attempt().avoid[..], ids);
}

#[tokio::test(start_paused = true)]
async fn a_mutation_is_never_retried_not_even_when_it_certainly_did_not_run() {
    for kind in [
        ErrorKind::BreakerOpen,
        ErrorKind::ConnectFailed,
        ErrorKind::Overloaded,
        ErrorKind::RateLimited,
    ] {
        let mock = MockService::sequence(vec![failed(kind, Delivery::NotSent)]);
        let error = retry(mock.clone())
            .oneshot(call(&write(), json!({})))
            .await
            .unwrap_err();
        assert_eq!((mock.started(), error.kind()), (1, kind));
        assert_eq!(error.delivery(), Delivery::NotSent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_mutation_without_an_answer_has_an_unknown_outcome_and_says_so() {
    for tool in [
        write(),
        tool("drop_table").destructive().build(),
        only_unsent(),
    ] {
        let mock = MockService::sequence(vec![failed(ErrorKind::Timeout, Delivery::Unknown)]);
        let error = retry(mock.clone())
            .oneshot(call(&tool, json!({})))
            .await
            .unwrap_err();
        assert_eq!(mock.started(), 1);
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(error.delivery(), Delivery::Unknown);
        let message = error.to_string();
        for part in [
            "was sent",
            "no answer",
            "may have run",
            "not sent again",
            "check",
        ] {
            assert!(message.contains(part), "{part:?} in {message:?}");
        }
        let cause = error.source().and_then(|e| e.downcast_ref::<ToolError>());
        assert_eq!(cause.map(ToolError::kind), Some(ErrorKind::Timeout));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_fault_of_a_mutation_is_passed_on_with_its_stated_time() {
    let fault = ToolError::new(ErrorKind::ServerFault, Delivery::Answered, "503")
        .with_retry_after(std::time::Duration::from_secs(9));
    let mock = MockService::sequence(vec![Err(fault.clone())]);
    let error = retry(mock)
        .oneshot(call(&write(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ServerFault);
    assert_eq!(error.message(), "503; the call may have run");
    assert_eq!(error.retry_after(), fault.retry_after());
}

#[tokio::test(start_paused = true)]
async fn an_opted_in_write_goes_elsewhere_until_it_was_sent_once() {
    let mock = MockService::sequence(vec![
        failed(ErrorKind::ConnectFailed, Delivery::NotSent),
        failed(ErrorKind::ConnectionLost, Delivery::Unknown),
    ]);
    let error = retry(mock.clone())
        .oneshot(call(&only_unsent(), json!({})))
        .await
        .unwrap_err();
    assert_eq!(mock.started(), 2);
    assert_eq!(
        (error.kind(), error.attempts()),
        (ErrorKind::OutcomeUnknown, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn the_callers_fault_is_never_retried() {
    for kind in [
        ErrorKind::InvalidCall,
        ErrorKind::Unauthorized,
        ErrorKind::UnknownTool,
        ErrorKind::NoEligibleServer,
    ] {
        let mock = MockService::sequence(vec![failed(kind, Delivery::Answered)]);
        let result = retry(mock.clone()).oneshot(call(&read(), json!({}))).await;
        assert_eq!((mock.started(), result.unwrap_err().kind()), (1, kind));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_failure_is_an_answer() {
    let mock = MockService::sequence(vec![Ok(ToolOutput::error_text("no such order"))]);
    let output = retry(mock.clone())
        .oneshot(call(&read(), json!({})))
        .await
        .unwrap();
    assert!(output.is_error());
    assert_eq!(mock.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_during_its_pause_is_not_sent_again() {
    let mock = MockService::sequence(vec![failed(ErrorKind::Timeout, Delivery::Unknown)]);
    let running = retry(mock.clone()).oneshot(call(&read(), json!({})));
    let mut running = Box::pin(running);
    assert!(futures_util::poll!(&mut running).is_pending());
    drop(running);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(mock.started(), 1);
}

fn failures() -> impl Strategy<Value = Result<ToolOutput, ToolError>> {
    let kinds = prop::sample::select(vec![
        ErrorKind::BreakerOpen,
        ErrorKind::ConnectFailed,
        ErrorKind::ConnectionLost,
        ErrorKind::Internal,
        ErrorKind::Overloaded,
        ErrorKind::Protocol,
        ErrorKind::RateLimited,
        ErrorKind::ServerFault,
        ErrorKind::Timeout,
    ]);
    let deliveries = prop::sample::select(vec![
        Delivery::Answered,
        Delivery::NotSent,
        Delivery::Unknown,
    ]);
    (kinds, deliveries, any::<bool>()).prop_map(|(kind, delivery, stated)| {
        let error = ToolError::new(kind, delivery, "scripted");
        Err(if stated {
            error.with_retry_after(std::time::Duration::from_secs(1))
        } else {
            error
        })
    })
}

proptest! {
    /// The server runs a call whenever it reached it: answered or unknown, the worst case.
    #[test]
    fn an_unsafe_tool_runs_at_most_once_whatever_fails(
        mut script in prop::collection::vec(failures(), 1..8),
        opted_in in any::<bool>(),
        max_attempts in 1_u32..10,
    ) {
        script.push(answer());
        let sent = |result: &Result<ToolOutput, ToolError>| {
            !matches!(result, Err(error) if error.delivery() == Delivery::NotSent)
        };
        let tool = if opted_in { only_unsent() } else { write() };
        let mock = MockService::sequence(script.clone());
        let config = RetryConfig::default().with_max_attempts(max_attempts).with_budget_reserve(100);
        let service = Retry::new(mock.clone(), RetryPolicy::new(config).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let result = runtime.block_on(service.oneshot(call(&tool, json!({}))));
        let runs = script[..mock.started()].iter().filter(|result| sent(result)).count();
        prop_assert!(runs <= 1, "ran {runs} times");
        if !opted_in {
            prop_assert_eq!(mock.started(), 1);
        }
        // an unknown outcome must not look like a certain failure
        if let Err(error) = result {
            prop_assert_eq!(
                error.delivery() == Delivery::Unknown,
                error.kind() == ErrorKind::OutcomeUnknown
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_the_last_attempt_is_not_said_of_the_call() {
    for (first, delivery) in [
        (Delivery::Unknown, Delivery::Unknown),
        (Delivery::Answered, Delivery::Unknown),
        (Delivery::NotSent, Delivery::NotSent),
    ] {
        let mock = MockService::new(move |_, n| async move {
            match n {
                1 => failed(ErrorKind::Protocol, first),
                _ => failed(ErrorKind::BreakerOpen, Delivery::NotSent),
            }
        });
        let record = Arc::new(CallRecord::new());
        let call = call(&tool("set").idempotent().build(), json!({})).with_record(record.clone());
        let error = retry(mock).oneshot(call).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BreakerOpen);
        assert_eq!(error.delivery(), delivery, "after {first:?}");
        assert_eq!(record.was_retried(), first != Delivery::NotSent);
    }
}
