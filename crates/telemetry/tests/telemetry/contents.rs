//! Arguments and results in spans.

use callward_core::redact::Redactor;
use callward_core::{CacheStatus, SecurityLevel, ToolOutput};
use callward_telemetry::{CallSpanLayer, Contents, names};
use callward_testkit::{call, tool};
use serde_json::json;

use crate::capture::{Capture, send, server};

async fn shown(contents: Contents, level: SecurityLevel) -> (Option<String>, Option<String>) {
    let capture = Capture::start();
    let answers = server(CacheStatus::Miss, |_| {
        Ok(ToolOutput::text(r#"{"id":7,"apiKey":"hunter2"}"#))
    });
    let tool = tool("x")
        .hint(|hints| hints.security_level = Some(level))
        .build();
    let request = call(&tool, json!({"id": 7, "password": "hunter2"}));
    let layer = CallSpanLayer::new().with_contents(contents);
    send(&layer, &answers, request).await.unwrap();
    assert!(!capture.text().contains("hunter2"), "{}", capture.text());
    let seen = capture.one(names::CALL_SPAN);
    let of = |name| seen.field(name).map(str::to_owned);
    (of(names::ARGUMENTS), of(names::RESULT))
}

#[tokio::test(start_paused = true)]
async fn selected_contents_are_recorded_without_secrets() {
    let all = Contents::none().with_arguments().with_results();
    let (arguments, result) = shown(all, SecurityLevel::Public).await;
    let arguments = arguments.unwrap();
    assert_eq!(arguments, r#"{"id":7,"password":"[redacted]"}"#);
    assert!(result.unwrap().contains(r#"\"apiKey\":\"[redacted]\""#));

    let (arguments, result) = shown(Contents::none().with_arguments(), SecurityLevel::Public).await;
    assert!(arguments.is_some() && result.is_none());
    let (arguments, result) = shown(Contents::none().with_results(), SecurityLevel::Public).await;
    assert!(arguments.is_none() && result.is_some());
    assert_eq!(
        shown(Contents::none(), SecurityLevel::Public).await,
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn contents_of_a_restricted_tool_are_not_recorded() {
    let all = Contents::none().with_arguments().with_results();
    assert_eq!(shown(all, SecurityLevel::Restricted).await, (None, None));
}

#[tokio::test(start_paused = true)]
async fn recorded_contents_have_a_size_limit() {
    let short = Redactor::new(Redactor::DEFAULT_NAMES, 64);
    let contents = Contents::none().with_results().with_redactor(short);
    let (_, result) = shown(contents, SecurityLevel::Public).await;
    assert!(result.unwrap().len() <= 64);
}
