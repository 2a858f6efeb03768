//! Metrics of calls and attempts.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Annotations, ArgumentRule, CacheStatus, CallPlan, Condition, ConfirmOutcome, Confirmation,
    Hints, Inferred, Profile, Refinements, Tool, ToolCall, ToolOutput, Trust, When,
};
use callward_telemetry::CallSpanLayer;
use callward_testkit::{MockService, call, tool};
use futures_util::FutureExt;
use serde_json::json;
use tower::{Layer, ServiceExt};

use crate::capture::{Meters, Point, miss, plain, send, server};

fn by<'a>(point: &'a Point, name: &str) -> Option<&'a str> {
    point.by.get(name).map(String::as_str)
}

fn assert_by(point: &Point, expected: &[(&str, &str)]) {
    let found = point.by.iter().map(|(name, value)| (&**name, &**value));
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

async fn one_call(meters: &Meters, server: &MockService, tool: &Arc<Tool>) {
    let layer = CallSpanLayer::default().with_metrics(meters.metrics.clone());
    let _ = send(&layer, server, call(tool, json!({"password": "hunter2"}))).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_counted_and_measured_with_its_attributes() {
    let meters = Meters::start();
    let read = tool("read_order").read_only().build();
    let classified = server(CacheStatus::Miss, |_| Ok(ToolOutput::text("classified")));
    one_call(&meters, &classified, &read).await;

    let duration = meters.one("gen_ai.execute_tool.duration");
    assert_eq!((duration.count, duration.sum), (1, 0.25));
    assert_eq!(duration.unit, "s");
    assert_eq!(duration.bounds.first(), Some(&0.01));
    let calls = meters.one("callward.calls");
    assert_eq!(calls.count, 1);
    let both = [
        ("gen_ai.tool.name", "read_order"),
        ("callward.cache", "miss"),
        ("callward.server_set", "test"),
    ];
    let with = |more| [&both[..], &[more]].concat();
    assert_by(&duration, &with(("gen_ai.operation.name", "execute_tool")));
    assert_by(&calls, &with(("callward.effect", "read_only")));

    let attempts = meters.one("callward.attempts");
    assert_eq!(attempts.count, 1);
    assert_eq!(by(&attempts, "callward.server"), Some("orders-eu"));
    assert_eq!(by(&attempts, "error.type"), None);
    let overhead = meters.one("callward.overhead.duration");
    // without the attempt
    assert_eq!((overhead.count, overhead.sum), (1, 0.0));
    let fine = overhead.bounds.iter().filter(|bound| **bound < 1e-3);
    assert!(fine.count() > 6);

    // no arguments, and no results
    let text = format!("{:?}", [duration, calls, attempts, overhead]);
    for secret in ["password", "hunter2", "classified"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_approval_counts_by_what_came_of_it() {
    let meters = Meters::start();
    let remove = tool("remove").destructive().build();
    let read = tool("read").read_only().build();
    for tool in [&remove, &remove, &read] {
        one_call(&meters, &miss(), tool).await;
    }
    // a rule asked about this one
    let denied = MockService::new(|call: ToolCall, _| {
        let confirmation = Confirmation {
            outcome: ConfirmOutcome::Denied,
            request: "1".into(),
            arguments_digest: "2".into(),
            by: None,
            channel: None,
        };
        let record = call.record.as_ref().unwrap();
        record.with(|facts| facts.confirmation = Some(Arc::new(confirmation)));
        ready(Ok(ToolOutput::error_text("denied")))
    });
    one_call(&meters, &denied, &read).await;
    let mut counted: Vec<_> = meters
        .points("callward.confirm.outcomes")
        .iter()
        .map(|point| {
            (
                point.count,
                by(point, "callward.outcome").unwrap().to_owned(),
            )
        })
        .filter(|(count, _)| *count > 0)
        .collect();
    counted.sort_unstable();
    let expected = [(1, "denied".to_owned()), (2, "unasked".to_owned())];
    assert_eq!(counted, expected);
    let calls = meters.points("callward.calls");
    assert_eq!(calls.iter().map(|point| point.count).sum::<u64>(), 4);
}

#[tokio::test(start_paused = true)]
async fn overhead_is_not_recorded_for_waits_of_others() {
    // a joined call, one that asks a person, and one without an attempt
    let joined = server(CacheStatus::Joined, |_| Ok(ToolOutput::text("42")));
    let asked = server(CacheStatus::Invalidated, |_| Ok(ToolOutput::text("42")));
    let x = tool("x").build();
    let rm = tool("rm").destructive().build();
    for (server, tool) in [(&joined, &x), (&asked, &rm)] {
        let meters = Meters::start();
        one_call(&meters, server, tool).await;
        assert_eq!(meters.points("callward.overhead.duration"), []);
        assert_eq!(meters.points("callward.calls").len(), 1);
    }
    let meters = Meters::start();
    let layer = CallSpanLayer::default().with_metrics(meters.metrics.clone());
    layer.layer(miss()).oneshot(plain()).await.unwrap();
    assert_eq!(meters.points("callward.overhead.duration"), []);
}

#[tokio::test(start_paused = true)]
async fn the_overhead_of_a_hit_is_its_duration() {
    let meters = Meters::start();
    let hit = MockService::new(|call, _| async move {
        if let Some(record) = &call.record {
            record.with(|facts| facts.cache = CacheStatus::Hit);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(ToolOutput::text("42"))
    });
    let layer = CallSpanLayer::default().with_metrics(meters.metrics.clone());
    layer.layer(hit).oneshot(plain()).await.unwrap();
    let overhead = meters.one("callward.overhead.duration");
    assert_eq!((overhead.count, overhead.sum), (1, 0.002));
    assert_eq!(by(&overhead, "callward.cache"), Some("hit"));
    assert_eq!(meters.points("callward.attempts"), []);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_counted_as_cancelled() {
    let meters = Meters::start();
    let (slow, x) = (miss(), tool("x").build());
    assert!(one_call(&meters, &slow, &x).now_or_never().is_none());
    for metric in ["callward.calls", "callward.attempts"] {
        let point = meters.one(metric);
        assert_eq!(by(&point, "error.type"), Some("cancelled"), "{metric}");
        assert_eq!(point.count, 1);
    }
    assert_eq!(meters.points("callward.overhead.duration"), []);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_counted_with_the_effect_of_its_arguments() {
    let own = tool("tabs").destructive().build();
    let lists = When::argument("action", Condition::equals("list")).unwrap();
    let rule = ArgumentRule::new(lists, Annotations::default().with_read_only(true)).unwrap();
    let (inferred, declared) = (Inferred::default(), Annotations::default());
    let said = Hints::new(&inferred, &declared, Trust::Trusted);
    let rules = Refinements::bind(&[rule], &said, own.plan(), &Profile::standard());
    let plan = CallPlan::clone(own.plan());
    let (set, definition) = (own.set().clone(), own.definition.clone());
    let mut refined = Tool::new(set, definition, own.resolved.clone(), plan);
    refined.refinements = rules;

    let meters = Meters::start();
    let layer = CallSpanLayer::default().with_metrics(meters.metrics.clone());
    let request = call(&Arc::new(refined), json!({"action": "list"}));
    send(&layer, &miss(), request).await.unwrap();
    let calls = meters.one("callward.calls");
    assert_eq!(by(&calls, "callward.effect"), Some("read_only"));
    // the tool's own plan asks a person, so it has no overhead; this call's plan does not
    assert_eq!(meters.one("callward.overhead.duration").count, 1);
}
