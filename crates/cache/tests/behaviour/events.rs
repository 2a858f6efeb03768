//! What is told of the cache as it happens, and what is counted.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{BypassReason, CacheConfig, CacheEvent, CacheStats, Happened, RefusalReason};
use callward_core::{CallRecord, Delivery, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::common::{Bench, failure, get, read, set, write};

/// Returns what happened since the last look.
fn told(events: &mut Receiver<CacheEvent>) -> Vec<Happened> {
    std::iter::from_fn(|| events.try_recv().ok())
        .map(|event| event.what)
        .collect()
}

/// Returns the reason for which a result was not kept.
async fn refusal(config: CacheConfig, answer: Result<ToolOutput, Delivery>) -> Option<Happened> {
    let mock = MockService::new(move |_, _| {
        let answer = answer.clone().map_err(failure);
        async move { answer }
    });
    let bench = Bench::with(config, mock);
    let mut events = bench.handle.events();
    let _failed = bench.ask(read()).await;
    assert_eq!(bench.stats().refusals.total(), 1);
    assert_eq!(bench.stats().stored, 0);
    told(&mut events).pop()
}

#[tokio::test(start_paused = true)]
async fn each_call_is_told_as_it_is_decided() {
    let bench = Bench::new(MockService::counting());
    let mut events = bench.handle.events();
    bench.text(read()).await;
    let stored = told(&mut events);
    assert_eq!(stored[0], Happened::Miss);
    let Happened::Stored { bytes, ttl } = stored[1] else {
        panic!("{stored:?}")
    };
    assert!(bytes <= bench.stats().bytes);
    assert_eq!(ttl, Duration::from_secs(300));
    bench.text(read()).await;
    assert_eq!(told(&mut events), [Happened::Hit]);
    bench.text(write()).await;
    assert_eq!(told(&mut events), [Happened::Invalidated]);
    bench.text(set(1)).await;
    assert_eq!(told(&mut events).len(), 2);
    bench.text(set(1)).await;
    assert_eq!(told(&mut events), [Happened::Hit]);
    bench.text(ToolCall::new(get(), r#"{"a":1,"a":1}"#)).await;
    let bypassed = Happened::Bypassed(BypassReason::Arguments);
    assert_eq!(told(&mut events), [bypassed]);
    let event = {
        bench.text(read()).await;
        events.try_recv().unwrap()
    };
    assert_eq!((event.set.as_str(), event.tool.as_str()), ("test", "get"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_kept_is_told_with_its_reason() {
    let refused = |reason| Some(Happened::Refused(reason));
    let plain = CacheConfig::default;
    let failed = refusal(plain(), Err(Delivery::Answered)).await;
    assert_eq!(failed, refused(RefusalReason::Failed));
    let of_tool = refusal(plain(), Ok(ToolOutput::error_text("no"))).await;
    assert_eq!(of_tool, refused(RefusalReason::ToolError));
    let round = ToolOutput::from_json(r#"{"resultType":"input_required"}"#).unwrap();
    let incomplete = refusal(plain(), Ok(round)).await;
    assert_eq!(incomplete, refused(RefusalReason::Incomplete));
    let mut small = plain();
    small.max_item_bytes = 10;
    let large = refusal(small, Ok(ToolOutput::text("much too long"))).await;
    assert_eq!(large, refused(RefusalReason::TooLarge));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_a_write_overtakes_is_told_so() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let mut events = bench.handle.events();
    let running = bench.start(read()).await;
    let writing = bench.start(write()).await;
    gate.open(2);
    running.await.unwrap().unwrap();
    writing.await.unwrap().unwrap();
    let told = told(&mut events);
    assert!(
        told.contains(&Happened::Refused(RefusalReason::Overtaken)),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn why_a_call_was_not_looked_up_stands_in_its_record_and_in_the_counts() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    gate.open(10);
    let why = async |call: ToolCall| {
        let record = Arc::new(CallRecord::new());
        let _answer = bench.ask(call.with_record(record.clone())).await;
        record.cache_bypass()
    };
    assert_eq!(why(read()).await, None);
    assert_eq!(why(ToolCall::new(get(), "[")).await, Some("arguments"));
    let lost = bench.start(write()).await;
    lost.abort();
    let _aborted = lost.await;
    let bypasses = bench.stats().bypasses;
    assert_eq!(bypasses.get(BypassReason::Arguments), 1);
    assert_eq!(bypasses.total(), bench.stats().bypassed);
}

#[tokio::test(start_paused = true)]
async fn each_tool_is_counted_for_itself_and_the_total_is_their_sum() {
    let bench = Bench::new(MockService::new(|_, _| async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        Ok(ToolOutput::text("a"))
    }));
    for _ in 0..3 {
        bench.text(read()).await;
    }
    let list = tool("list").read_only().build();
    bench.text(call(&list, json!({}))).await;
    let tools = bench.handle.tools();
    let names: Vec<&str> = tools.iter().map(|of| of.tool.as_str()).collect();
    assert_eq!(names, ["get", "list"]);
    let get = &tools[0];
    assert_eq!((get.counts.hits, get.counts.misses), (2, 1));
    assert_eq!(get.counts.hit_rate(), Some(2.0 / 3.0));
    assert_eq!(get.mean_duration, Some(Duration::from_millis(800)));
    assert_eq!(get.counts.saved, Duration::from_millis(1600));
    assert_eq!(get.entries, 1);
    assert_eq!(get.bytes + tools[1].bytes, bench.stats().bytes);
    let mut sum = get.counts;
    sum += tools[1].counts;
    assert_eq!(sum, bench.stats().counts);
    let written = serde_json::to_value(get).unwrap();
    assert_eq!(written["hits"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_sleeps_loses_events_and_holds_nobody_up() {
    let bench = Bench::new(MockService::counting());
    let mut events = bench.handle.events();
    for _ in 0..3000 {
        bench.text(read()).await;
    }
    assert!(matches!(events.try_recv(), Err(TryRecvError::Lagged(lost)) if lost > 1000));
    drop(events);
    bench.text(read()).await;
    assert_eq!(bench.stats().hits, 3000);
}

#[test]
fn nothing_looked_up_has_no_hit_rate() {
    assert_eq!(CacheStats::default().hit_rate(), None);
}
