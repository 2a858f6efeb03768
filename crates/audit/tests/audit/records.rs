//! The record of each call.

use std::sync::Arc;

use callward_audit::Bodies;
use callward_core::{
    CacheStatus, CallRecord, Caller, ClientInfo, Delivery, ErrorKind, Inbound, Principal,
    SecurityLevel, ServerId, SessionId, ToolError, ToolOutput, TraceContext, Transport,
};
use callward_testkit::{MockService, call, tool};
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
        let record = call.record().unwrap();
        record.with(|facts| {
            facts.cache = CacheStatus::Miss;
            facts.started_attempts = 1;
            facts.server = Some((ServerId::new("eu-1").unwrap(), "in turn"));
        });
        Ok(ToolOutput::json(&json!({"balance": 7, "api_key": "k3y"})).unwrap())
    });
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = pay(json!({"to": "bob", "password": "hunter2"}))
        .with_caller(ada())
        .with_trace(Arc::new(TraceContext::parse(trace, None).unwrap()));
    audited(&log, server).oneshot(asked).await.unwrap();
    log.close().await;

    let [record] = &bed.records("call")[..] else {
        panic!("one record expected")
    };
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
    let [record] = &bed.records("call")[..] else {
        panic!("one record expected")
    };
    let members = record.as_object().unwrap().keys().map(String::as_str);
    let expected = "duration_us hash kind level open_world outcome prev seq set time tool";
    assert_eq!(members.collect::<Vec<_>>().join(" "), expected, "{record}");
    assert_eq!(
        (&record["tool"], &record["level"]),
        (&json!("look"), &json!("partial"))
    );
}

#[tokio::test]
async fn every_record_names_the_client_and_its_address() {
    let bed = Bed::new();
    let info = r#"{"name":"a \u001b[31m name","version":"1.2"}"#;
    let mut inbound = Inbound::new(Transport::Tcp);
    inbound.client_info = ClientInfo::from_json(info.as_bytes()).map(Arc::new);
    inbound.client = Some(([127, 0, 0, 1], 4321).into());
    let inbound = Arc::new(inbound);
    let look = call(&leveled("look", SecurityLevel::Internal), json!({}));
    let pipe = Arc::new(Inbound::new(Transport::Pipe));
    let calls = [
        (pay(json!({})), &inbound),
        (look, &inbound),
        (pay(json!({})), &pipe),
    ];
    let calls = calls.map(|(mut call, inbound)| {
        call.context_mut().inbound = Some(inbound.clone());
        call
    });
    bed.record(bed.config(), calls).await;
    let log = bed.open();
    let error = ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, "no such tool");
    log.note_refused("gone", None, Some(&inbound), &error);
    log.close().await;

    let client =
        json!({"name": "a \u{1b}[31m name", "version": "1.2", "address": "127.0.0.1:4321"});
    let calls = bed.records("call");
    for record in [&calls[0], &calls[1], &bed.records("refused")[0]] {
        assert_eq!(record["client"], client, "{record}");
    }
    assert!(calls[2].get("client").is_none(), "{}", calls[2]);
}

#[tokio::test]
async fn open_world_calls_have_their_own_file_unless_the_paths_are_equal() {
    let bed = Bed::new();
    let tweet = tool("tweet").hint(|hints| {
        hints.audit_required = Some(true);
        hints.open_world_hint = Some(true);
    });
    let tweet = tweet.build();
    let beside = bed.config();
    let together = bed.config_with(|config| config.open_world_path = bed.path.clone());
    for (config, here) in [(beside, 0), (together, 1)] {
        bed.record(config, [call(&tweet, json!({}))]).await;
        assert_eq!(
            (bed.records("call").len(), bed.open_world().len()),
            (here, 1)
        );
    }
    assert_eq!(bed.open_world()[0]["open_world"], true);
}

#[tokio::test]
async fn refused_failed_and_cancelled_calls_have_records() {
    use Delivery::NotSent;

    let bed = Bed::new();
    let log = bed.open();
    for (kind, delivery, outcome, by) in [
        (ErrorKind::RateLimited, NotSent, "refused", "rate_limit"),
        (ErrorKind::BreakerOpen, NotSent, "refused", "breaker"),
        (ErrorKind::NoEligibleServer, NotSent, "refused", "router"),
        (ErrorKind::Timeout, Delivery::Unknown, "failed", ""),
        (ErrorKind::ServerFault, Delivery::Answered, "failed", ""),
        (ErrorKind::ConnectFailed, NotSent, "failed", ""),
    ] {
        let server = MockService::new(move |_, _| async move {
            Err(ToolError::new(kind, delivery, "no: token=t0k3n"))
        });
        let asked = audited(&log, server).oneshot(pay(json!({})));
        asked.await.unwrap_err();
        log.flush().await;
        let records = bed.records("call");
        let record = records.last().unwrap();
        assert_eq!(record["outcome"], outcome, "{record}");
        assert_eq!(record["error"]["kind"], kind.as_str());
        assert_eq!(record["error"]["delivery"], delivery.as_str());
        assert_eq!(record["error"]["message"], "[redacted]");
        assert_eq!(record["decision"]["by"].as_str().unwrap_or_default(), by);
    }
    let failing = MockService::sequence(vec![Ok(ToolOutput::error_text("no money"))]);
    let asked = audited(&log, failing).oneshot(pay(json!({})));
    asked.await.unwrap();
    let pending = MockService::new(|_, _| std::future::pending());
    let running = audited(&log, pending).oneshot(pay(json!({})));
    assert!(running.now_or_never().is_none());
    log.close().await;
    let records = bed.records("call");
    let last = records.iter().rev().take(2);
    let outcomes: Vec<_> = last.map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["cancelled", "tool_error"]);
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
        let record = bed.records("call").remove(0);
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
    let error = ToolError::new(ErrorKind::UnknownTool, Delivery::NotSent, "no tool");
    let long = "x".repeat(10_000);
    for _ in 0..60 {
        log.note_refused(&long, Some(&ada()), None, &error);
    }
    log.close().await;
    let records = bed.records("refused");
    assert_eq!(records.len(), 50);
    assert_eq!(records[0]["principal"], "ada");
    assert_eq!(records[0]["error"]["kind"], "unknown_tool");
    assert_eq!(records[0]["tool"].as_str().unwrap().chars().count(), 201);
    // the writer states them with each write
    let notes = bed.records("suppressed");
    let counts = notes.iter().map(|note| note["records"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 10);
    assert_eq!((bed.whole().suppressed, log.stats().suppressed), (10, 10));
}

#[tokio::test]
async fn the_call_record_of_an_outer_layer_is_used() {
    let bed = Bed::new();
    let record = Arc::new(CallRecord::new());
    record.with(|facts| facts.cache = CacheStatus::Hit);
    let asked = pay(json!({})).with_record(record);
    bed.record(bed.config(), [asked]).await;
    assert_eq!(bed.records("call")[0]["cache"], "hit");
}
