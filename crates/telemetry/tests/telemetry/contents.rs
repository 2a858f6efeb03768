//! Arguments and results in spans.

use callward_core::{CacheStatus, SecurityLevel, ToolOutput};
use callward_telemetry::{CallSpanLayer, Contents, names};
use callward_testkit::{call, tool};
use serde_json::json;

use crate::capture::{Capture, send, server};

fn contents(arguments: bool, results: bool) -> Contents {
    let mut contents = Contents::default();
    (contents.arguments, contents.results) = (arguments, results);
    contents
}

async fn shown(contents: Contents, level: SecurityLevel) -> (Option<String>, Option<String>) {
    let capture = Capture::start();
    let answers = server(CacheStatus::Miss, |_| {
        Ok(ToolOutput::text(r#"{"id":7,"apiKey":"hunter2"}"#))
    });
    let tool = tool("x").hint(|hints| hints.security_level = Some(level));
    let request = call(&tool.build(), json!({"id": 7, "password": "hunter2"}));
    let layer = CallSpanLayer::default().with_contents(contents);
    send(&layer, &answers, request).await.unwrap();
    assert!(!capture.text().contains("hunter2"), "{}", capture.text());
    let seen = capture.one(names::CALL_SPAN);
    let of = |name| seen.field(name).map(str::to_owned);
    (of(names::ARGUMENTS), of(names::RESULT))
}

#[tokio::test(start_paused = true)]
async fn only_selected_contents_are_recorded_and_without_secrets() {
    for arguments in [false, true] {
        for results in [false, true] {
            let selected = contents(arguments, results);
            let (shown_arguments, result) = shown(selected.clone(), SecurityLevel::Public).await;
            let expected = arguments.then_some(r#"{"id":7,"password":"[redacted]"}"#);
            assert_eq!(shown_arguments.as_deref(), expected);
            let shows = |text: &String| text.contains(r#"\"apiKey\":\"[redacted]\""#);
            assert_eq!(result.as_ref().map(shows), results.then_some(true));
            let restricted = shown(selected, SecurityLevel::Restricted).await;
            assert_eq!(restricted, (None, None));
        }
    }
}
