//! The error of a call that failed.

use std::error::Error;
use std::sync::Arc;

use callward_core::{Delivery, ErrorKind, FailedAttempt, ServerId, Tool, ToolCall, ToolError};
use callward_testkit::{MockService, call};
use serde_json::json;
use tower::ServiceExt;
use tower_layer::Layer;

use crate::bed::{layer, ms, named, of, plain, read};

/// A write with a tool that checks its outcome.
fn verified() -> ToolCall {
    let mut pay = Tool::clone(&named("create_payment"));
    pay.verifier = Some("shop__get_payment".into());
    call(&Arc::new(pay), json!({"card": "4111"}))
}

/// Sends a call to a server that fails after a second with these errors, one after the other.
async fn fail(call: ToolCall, errors: Vec<ToolError>) -> ToolError {
    let server = MockService::new(move |_, n| {
        let error = errors[n - 1].clone();
        async move {
            tokio::time::sleep(ms(1_000)).await;
            Err(error)
        }
    });
    let service = layer(plain(|_| {})).layer(server);
    service.oneshot(call).await.unwrap_err()
}

fn lost(server: &str) -> ToolError {
    let kind = ErrorKind::ConnectionLost;
    let error = ToolError::new(kind, Delivery::Unknown, "reset by peer");
    error.with_server(ServerId::new(server).unwrap())
}

fn refused(server: &str) -> ToolError {
    let error = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "refused");
    error.with_server(ServerId::new(server).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_error_has_the_history_of_all_attempts() {
    let errors = vec![lost("a"), refused("b"), lost("a").with_code(502)];
    let error = fail(read(), errors).await;
    let of = |attempt: &FailedAttempt| {
        let server = attempt.server.clone().unwrap().to_string();
        (server, attempt.kind, attempt.delivery, attempt.pause)
    };
    let (lost, refused) = (ErrorKind::ConnectionLost, ErrorKind::ConnectFailed);
    let expected = [
        ("a".to_owned(), lost, Delivery::Unknown, ms(0)),
        ("b".to_owned(), refused, Delivery::NotSent, ms(100)),
        ("a".to_owned(), lost, Delivery::Unknown, ms(200)),
    ];
    assert_eq!(error.history.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(error.attempts, 3);
    let shown = error.to_string();
    let end = "3 attempts: a connection_lost, b connect_failed, a connection_lost)";
    assert!(shown.ends_with(end), "{shown}");
    assert!(format!("{error:?}").contains("reset by peer"), "{error:?}");
    let last = serde_json::to_value(&error.history[2]).unwrap();
    let expected = json!({
        "server": "a", "kind": "connection_lost", "delivery": "unknown", "code": 502,
        "message": "reset by peer", "pauseMs": 200,
    });
    assert_eq!(last, expected);
    // a call without a retry has none
    let error = fail(crate::bed::of("pay"), vec![self::refused("b")]).await;
    assert_eq!((&*error.history, error.attempts), (&[][..], 1));
    assert_eq!(error.outcome, None);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_states_call_time_server_and_verifier() {
    // that of the attempt that was sent, also after another one
    let error = fail(of("transfer"), vec![refused("b"), lost("a")]).await;
    assert_eq!(error.outcome.as_ref().unwrap().sent_ago, ms(1_000));
    let error = fail(verified(), vec![lost("a")]).await;
    assert_eq!(error.kind, ErrorKind::OutcomeUnknown);
    let known = error.outcome.as_ref().unwrap();
    let expected = json!({
        "set": "test", "tool": "create_payment", "server": "a", "argumentBytes": 15,
        "sentMsAgo": 1_000, "failure": "connection_lost", "detail": "reset by peer",
        "verifyWith": "shop__get_payment",
    });
    assert_eq!(serde_json::to_value(known).unwrap(), expected);
    let parts = "`create_payment`, server `a`, 1s ago, was sent, no answer, connection_lost, \
                 may have run, not sent again, check, `shop__get_payment`";
    for part in parts.split(", ") {
        assert!(error.message.contains(part), "{part:?} in {error}");
    }
    // arguments may be secret
    assert!(!format!("{error:?}").contains("4111"));
    let cause = error.source().unwrap().downcast_ref::<ToolError>();
    assert_eq!(cause.map(|error| &*error.message), Some("reset by peer"));
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_a_server_reports_of_a_write_says_that_it_may_have_run() {
    use ErrorKind::{InvalidCall, Protocol, ServerFault, Timeout, Unauthorized};
    let check = "; the call may have run: check with `shop__get_payment`";
    let plain = "";
    for (call, kind, code, note) in [
        (verified(), ServerFault, -32000, check),
        (verified(), Protocol, -32000, check),
        (verified(), Timeout, -32000, check),
        (verified(), InvalidCall, -32602, check),
        (of("pay"), ServerFault, -32000, "; the call may have run"),
        (verified(), InvalidCall, -32600, plain),
        (verified(), InvalidCall, -32042, plain),
        (verified(), Unauthorized, 401, plain),
    ] {
        let failed = ToolError::new(kind, Delivery::Answered, "HTTP 500").with_code(code);
        let mut failed = failed.with_retry_after(ms(9_000));
        if let Ok(status) = u16::try_from(code) {
            failed = failed.with_http_status(status);
        }
        let error = fail(call, vec![failed]).await;
        assert_eq!(error.message, format!("HTTP 500{note}"));
        assert_eq!(error.history.is_empty(), note.is_empty(), "{error:?}");
        assert_eq!((error.kind, &error.outcome), (kind, &None));
        assert_eq!(error.retry_after, Some(ms(9_000)));
        let shown = error.to_string().contains("delivery answered");
        assert!(note.is_empty() || shown, "{error}");
    }
    let fault = || ToolError::new(ServerFault, Delivery::Answered, "HTTP 500").with_code(-32000);
    let error = fail(read(), vec![fault(), fault(), fault()]).await;
    assert_eq!(error.message, "HTTP 500", "a read has no effect");
}
