//! The counts of the cache, and its part of a call's record.

use std::sync::Arc;
use std::time::Duration;

use callward_cache::{BypassReason, CacheConfig, CacheStats, RefusalReason};
use callward_core::{CallRecord, Delivery, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::json;

use crate::common::{Bench, failure, get, read, set, write};

#[tokio::test(start_paused = true)]
async fn each_call_is_counted_once_when_it_is_decided() {
    let bench = Bench::new(MockService::counting());
    for call in [read(), read(), write(), set(1), set(1)] {
        bench.text(call).await;
    }
    bench.text(ToolCall::new(get(), r#"{"a":1,"a":1}"#)).await;
    let stats = bench.stats();
    assert_eq!((stats.misses, stats.hits, stats.stored), (1, 2, 2));
    assert_eq!((stats.invalidations, stats.bypassed), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_kept_is_counted_by_reason() {
    let round = ToolOutput::from_json(r#"{"resultType":"input_required"}"#).unwrap();
    for (answer, reason) in [
        (Err(Delivery::Answered), RefusalReason::Failed),
        (Ok(ToolOutput::error_text("no")), RefusalReason::ToolError),
        (Ok(round), RefusalReason::Incomplete),
        (
            Ok(ToolOutput::text("x".repeat(200))),
            RefusalReason::TooLarge,
        ),
    ] {
        let mock = MockService::new(move |_, _| {
            let answer = answer.clone().map_err(failure);
            async move { answer }
        });
        let mut config = CacheConfig::default();
        config.max_item_bytes = 150;
        let bench = Bench::with(config, mock);
        let _failed = bench.ask(read()).await;
        let stats = bench.stats();
        assert_eq!(
            (stats.refusals.get(reason), stats.stored),
            (1, 0),
            "{reason:?}"
        );
        assert_eq!(stats.refusals.total(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_a_write_overtakes_is_counted() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let running = bench.start(read()).await;
    let writing = bench.start(write()).await;
    gate.open(2);
    running.await.unwrap().unwrap();
    writing.await.unwrap().unwrap();
    assert_eq!(bench.stats().refusals.get(RefusalReason::Overtaken), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bypass_is_recorded_in_the_call_and_counted() {
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
async fn each_tool_has_counts_and_the_total_is_their_sum() {
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
    assert_eq!(get.counts.saved, Duration::from_millis(1600));
    let mut sum = get.counts;
    sum += tools[1].counts;
    assert_eq!(sum, bench.stats().counts);
    let written = serde_json::to_value(get).unwrap();
    assert_eq!(written["hits"], 2);
}

#[test]
fn no_look_up_has_no_hit_rate() {
    assert_eq!(CacheStats::default().hit_rate(), None);
}
