//! The error of a call that failed.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Delivery, ErrorKind, FailedAttempt, ServerId, Tool, ToolError, ToolOutput, Verifier,
};
use callward_retry::{Backoff, Jitter, Retry, RetryConfig, RetryPolicy};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tower::ServiceExt;

fn retry(inner: MockService) -> Retry<MockService> {
    let plain = Backoff::new(Jitter::None, Duration::from_secs(10));
    let config = RetryConfig::default().with_backoff(plain);
    Retry::new(inner, RetryPolicy::new(config).unwrap())
}

fn lost_on(server: &str) -> ToolError {
    ToolError::new(
        ErrorKind::ConnectionLost,
        Delivery::Unknown,
        "reset by peer",
    )
    .with_server(ServerId::new(server).unwrap())
}

fn refused() -> ToolError {
    ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "refused")
        .with_server(ServerId::new("b").unwrap())
}

fn read() -> Arc<Tool> {
    tool("get_order").read_only().build()
}

#[tokio::test(start_paused = true)]
async fn an_error_has_the_history_of_all_attempts() {
    let script = vec![
        Err(lost_on("a")),
        Err(refused()),
        Err(lost_on("a").with_code(502)),
    ];
    let mock = MockService::sequence(script);
    let error = retry(mock)
        .oneshot(call(&read(), json!({})))
        .await
        .unwrap_err();
    let messages: Vec<_> = error
        .history()
        .iter()
        .map(|attempt| {
            (
                attempt.server.as_ref().unwrap().as_str(),
                attempt.kind,
                attempt.delivery,
                attempt.pause,
            )
        })
        .collect();
    let ms = Duration::from_millis;
    assert_eq!(
        messages,
        [
            ("a", ErrorKind::ConnectionLost, Delivery::Unknown, ms(0)),
            ("b", ErrorKind::ConnectFailed, Delivery::NotSent, ms(100)),
            ("a", ErrorKind::ConnectionLost, Delivery::Unknown, ms(200)),
        ]
    );
    assert_eq!(error.attempts(), 3);
    let shown = error.to_string();
    assert!(
        shown.ends_with("3 attempts: a connection_lost, b connect_failed, a connection_lost)"),
        "{shown}"
    );
    assert!(format!("{error:?}").contains("reset by peer"), "{error:?}");
    assert_eq!(
        serde_json::to_value(&error.history()[2]).unwrap(),
        json!({
            "server": "a",
            "kind": "connection_lost",
            "delivery": "unknown",
            "code": 502,
            "message": "reset by peer",
            "pauseMs": 200,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_without_a_retry_has_the_attempts_before() {
    let config = RetryConfig::default().with_budget_reserve(1);
    let policy = RetryPolicy::new(config).unwrap();
    let mock = MockService::new(|_, _| async { Err::<ToolOutput, _>(refused()) });
    let service = Retry::new(mock, policy);
    let error = service.oneshot(call(&read(), json!({}))).await.unwrap_err();
    assert!(error.message().contains("budget"), "{error}");
    assert_eq!(error.history().len(), 2);
    let messages: Vec<_> = error
        .history()
        .iter()
        .map(|attempt| &*attempt.message)
        .collect();
    assert_eq!(
        messages,
        ["refused", "refused"],
        "each attempt's own message"
    );
}

#[tokio::test(start_paused = true)]
async fn a_single_attempt_has_no_history() {
    let mock = MockService::sequence(vec![Err(refused())]);
    let call = call(&tool("pay").build(), json!({}));
    let error = retry(mock).oneshot(call).await.unwrap_err();
    assert_eq!((error.history(), error.attempts()), (&[][..], 1));
    assert_eq!(error.outcome(), None);
}

/// Keeps its caller waiting for a while, and loses the connection.
fn losing(after: Duration) -> MockService {
    MockService::new(move |_, _| async move {
        tokio::time::sleep(after).await;
        Err(lost_on("a"))
    })
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_states_call_time_server_and_verifier() {
    let verifier = Verifier::new("get_payment".parse().unwrap(), "shop__get_payment");
    let pay = Tool::clone(&tool("create_payment").build()).with_verifier(Some(verifier));
    let call = call(&Arc::new(pay), json!({"card": "4111"}));
    let mock = losing(Duration::from_millis(2_500));
    let error = retry(mock).oneshot(call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let known = error.outcome().unwrap();
    assert_eq!(
        serde_json::to_value(known).unwrap(),
        json!({
            "set": "test",
            "tool": "create_payment",
            "server": "a",
            "argumentBytes": 15,
            "sentMsAgo": 2_500,
            "failure": "connection_lost",
            "detail": "reset by peer",
            "verifyWith": "shop__get_payment",
        })
    );
    let message = error.message();
    for part in [
        "`create_payment`",
        "server `a`",
        "2.5s ago",
        "connection_lost",
        "may have run",
        "not sent again",
        "`shop__get_payment`",
    ] {
        assert!(message.contains(part), "{part:?} in {message:?}");
    }
    assert!(
        !format!("{error:?}").contains("4111"),
        "arguments may be secret"
    );
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<ToolError>());
    assert_eq!(cause.map(ToolError::message), Some("reset by peer"));
}

#[tokio::test(start_paused = true)]
async fn the_stated_time_is_that_of_the_sent_attempt() {
    use callward_core::{CallPlan, Profile, RetryRule};
    let write = tool("pay").build();
    let mut plan = CallPlan::derive(write.resolved(), &Profile::standard());
    plan.retry = RetryRule::OnlyUnsent;
    let tool = Tool::new(
        write.set().clone(),
        write.definition().clone(),
        write.resolved().clone(),
        plan,
    );
    let mock = MockService::new(|_, n| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(if n == 1 { refused() } else { lost_on("a") })
    });
    let error = retry(mock)
        .oneshot(call(&Arc::new(tool), json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.outcome().unwrap().sent_ago, Duration::from_secs(1));
    let kinds: Vec<_> = error
        .history()
        .iter()
        .map(|attempt: &FailedAttempt| attempt.kind)
        .collect();
    assert_eq!(kinds, [ErrorKind::ConnectFailed, ErrorKind::ConnectionLost]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_a_server_reports_of_a_write_says_that_it_may_have_run() {
    use ErrorKind::{InvalidCall, Protocol, ServerFault, Timeout, Unauthorized};
    let verifier = Verifier::new("get_payment".parse().unwrap(), "shop__get_payment");
    let write = Tool::clone(&tool("create_payment").build()).with_verifier(Some(verifier));
    let write = Arc::new(write);
    for (tool, kind, code, said) in [
        (&write, ServerFault, -32000, true),
        (&write, Protocol, -32000, true),
        (&write, Timeout, -32000, true),
        (&write, InvalidCall, -32602, true),
        (&write, InvalidCall, -32600, false),
        (&write, Unauthorized, 401, false),
        (&read(), ServerFault, -32000, false),
    ] {
        let failed = ToolError::new(kind, Delivery::Answered, "HTTP 500").with_code(code);
        let failed = match u16::try_from(code) {
            Ok(status) => failed.with_http_status(status),
            Err(_) => failed,
        };
        let mock = MockService::new(move |_, _| std::future::ready(Err(failed.clone())));
        let error = retry(mock).oneshot(call(tool, json!({}))).await;
        let error = error.unwrap_err();
        let text = "HTTP 500; the call may have run: check with `shop__get_payment`";
        assert_eq!(error.message() == text, said, "{error}");
        assert_eq!(error.history().len() == 1, said, "{error:?}");
        assert_eq!((error.kind(), error.outcome()), (kind, None));
        assert!(
            !said || error.to_string().contains("delivery answered"),
            "{error}"
        );
    }
}
