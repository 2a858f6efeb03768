//! The counts of each tool. `reads` and `flight` have those of single calls.

use std::time::Duration;

use callward_cache::CacheStats;
use callward_core::ToolOutput;
use callward_testkit::{MockService, call, tool};
use serde_json::json;

use crate::common::{Bench, read};

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
