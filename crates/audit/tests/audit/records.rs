//! The record of each call.

use std::sync::Arc;

use callward_audit::Bodies;
use callward_core::{
    CacheStatus, Caller, Delivery, ErrorKind, Method, Principal, SecurityLevel, ServerId,
    SessionId, ToolError, ToolOutput, TraceContext,
};
use callward_testkit::{MockService, call};
use futures_util::FutureExt;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, audited, leveled, pay};

fn ada() -> Arc<Caller> {
    let caller = Caller::new(Principal::new("ada"));
    Arc::new(caller.with_session(SessionId::new("s3ss10n-secret")))
}

#[tokio::test]
async fn a_restricted_call_has_a_full_redacted_record() {
    let bed = Bed::new();
    let log = bed.open();
    let server = MockService::new(|call, _| async move {
        let record = call.record.as_ref().unwrap();
        record.with(|facts| {
            facts.cache = CacheStatus::Miss;
            facts.started_attempts = 1;
            facts.server = Some((ServerId::new("eu-1").unwrap(), "in turn"));
        });
        Ok(ToolOutput::json(&json!({"balance": 7, "api_key": "k3y"})).unwrap())
    });
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let arguments = json!({"to": "bob", "password": "hunter2"});
    let mut asked = pay(arguments).with_caller(ada());
    asked.context_mut().trace = TraceContext::parse(trace, None).map(Arc::new).ok();
    audited(&log, server).oneshot(asked).await.unwrap();
    log.close().await;

    let record = &bed.one();
    for (key, value) in [
        ("level", json!("full")),
        ("tool", json!("pay")),
        ("set", json!("test")),
        ("open_world", json!(false)),
        ("outcome", json!("answered")),
        ("effect", json!("mutating")),
        ("principal", json!("ada")),
        ("trace_id", json!("0af7651916cd43dd8448eb211c80319c")),
        ("decision", json!({"verdict": "allowed"})),
        ("confirm", json!("skip")),
        ("server", json!("eu-1")),
        ("attempts", json!(1)),
        ("cache", json!("miss")),
        ("arguments", json!({"to": "bob", "password": "[redacted]"})),
    ] {
        assert_eq!(record[key], value, "{key} of {record}");
    }
    assert_eq!(record["result"]["structuredContent"]["balance"], 7);
    let text = std::fs::read_to_string(&bed.path).unwrap();
    for secret in ["hunter2", "k3y", "s3ss10n"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(record["plan_reason"].is_string() && record["session"].is_string());
    assert!(record["duration_us"].is_u64() && record["time"].is_string());
}

#[tokio::test]
async fn a_request_about_a_task_names_its_tool_and_its_method() {
    let bed = Bed::new();
    let tool = leveled("look", SecurityLevel::Internal).of_task(Method::CancelTask);
    let cancels = call(&Arc::new(tool), json!({"taskId": "1"})).with_caller(ada());
    bed.record(bed.config(), [cancels]).await;
    let record = &bed.one();
    assert_eq!(
        (&record["tool"], &record["method"]),
        (&json!("look"), &json!("tasks/cancel"))
    );
}

#[tokio::test]
async fn an_internal_call_has_a_partial_record_and_a_public_one_none() {
    let bed = Bed::new();
    let levels = [
        ("look", SecurityLevel::Internal),
        ("see", SecurityLevel::Public),
    ];
    let calls = levels.map(|(name, level)| {
        call(&leveled(name, level), json!({"what": "this"})).with_caller(ada())
    });
    bed.record(bed.config(), calls).await;
    let record = &bed.one();
    let members = record.as_object().unwrap().keys().map(String::as_str);
    let expected = "duration_us hash kind level open_world outcome prev seq set time tool";
    assert_eq!(members.collect::<Vec<_>>().join(" "), expected, "{record}");
    assert_eq!(
        format!("{} {}", record["tool"], record["level"]),
        r#""look" "partial""#
    );
}

#[tokio::test]
async fn refused_failed_and_cancelled_calls_have_records() {
    use Delivery::NotSent;

    let bed = Bed::new();
    let log = bed.open();
    let rows = [
        (ErrorKind::RateLimited, NotSent, "refused", "rate_limit"),
        (ErrorKind::BreakerOpen, NotSent, "refused", "breaker"),
        (ErrorKind::NoEligibleServer, NotSent, "refused", "router"),
        (ErrorKind::Timeout, Delivery::Unknown, "failed", ""),
        (ErrorKind::ServerFault, Delivery::Answered, "failed", ""),
        (ErrorKind::ConnectFailed, NotSent, "failed", ""),
    ];
    let failed =
        rows.map(|(kind, delivery, ..)| Err(ToolError::new(kind, delivery, "token=t0k3n")));
    let no_money = Ok(ToolOutput::error_text("no money"));
    let server = MockService::sequence(failed.into_iter().chain([no_money]).collect());
    for _ in 0..=rows.len() {
        let _answer = audited(&log, server.clone()).oneshot(pay(json!({}))).await;
    }
    let pending = MockService::new(|_, _| std::future::pending());
    let running = audited(&log, pending).oneshot(pay(json!({})));
    assert!(running.now_or_never().is_none());
    log.close().await;

    let records = bed.records("call");
    for (record, (kind, delivery, outcome, by)) in records.iter().zip(rows) {
        assert_eq!(record["outcome"], outcome, "{record}");
        assert_eq!(record["error"]["kind"], kind.as_str());
        assert_eq!(record["error"]["delivery"], delivery.as_str());
        assert_eq!(record["error"]["message"], "[redacted]");
        assert_eq!(record["decision"]["by"].as_str().unwrap_or_default(), by);
    }
    let last = records.iter().skip(rows.len());
    let outcomes: Vec<_> = last.map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["tool_error", "cancelled"]);
    bed.whole();
}

#[tokio::test]
async fn arguments_and_results_can_be_digests_or_omitted() {
    for (bodies, has_hash) in [(Bodies::Digest, true), (Bodies::Omitted, false)] {
        let bed = Bed::new();
        let config = bed.config_with(|config| {
            (config.arguments, config.results) = (bodies, bodies);
        });
        bed.record(config, [pay(json!({"to": "bob"}))]).await;
        let record = bed.one();
        assert!(record["arguments"].is_null() && record["result"].is_null());
        assert_eq!(record["arguments_digest"]["bytes"], r#"{"to":"bob"}"#.len());
        assert_eq!(record["arguments_digest"]["hash"].is_string(), has_hash);
        assert_eq!(record["result_digest"]["hash"].is_string(), has_hash);
        assert!(!record.to_string().contains("bob"));
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_of_unknown_tools_are_cut_and_rate_limited() {
    let bed = Bed::new();
    let log = bed.open();
    let long = "x".repeat(10_000);
    let error = ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, "no tool");
    let stopping = ToolError::new(ErrorKind::Overloaded, Delivery::NotSent, "stopping");
    log.note_refused("a", None, &ada(), None, &stopping);
    for _ in 0..59 {
        log.note_refused(&long, None, &ada(), None, &error);
    }
    log.close().await;
    let records = bed.records("refused");
    assert_eq!(records.len(), 50);
    assert_eq!(records[0]["decision"]["by"], "shutdown");
    assert_eq!(records[1]["principal"], "ada");
    assert_eq!(records[1]["error"]["kind"], "unknown_tool");
    assert_eq!(records[1]["tool"].as_str().unwrap().chars().count(), 201);
    // the writer states them with each write
    let notes = bed.records("suppressed");
    let counts = notes.iter().map(|note| note["records"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 10);
    assert_eq!((bed.whole().suppressed, log.stats().suppressed), (10, 10));
}
