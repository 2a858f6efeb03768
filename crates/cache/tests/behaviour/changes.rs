//! Rules that change, and replica sets that go, while the cache is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_cache::{Cache, CacheHandle, CacheLayer, ScopeRules, ToolScopes};
use callward_core::{
    CacheStatus, CallRecord, Delivery, ReplicaSetId, Tool, ToolCall, ToolOutput, ToolService,
};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::sleep;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{Bench, failure, settle};

#[expect(clippy::expect_used, reason = "names and scopes here are well formed")]
fn rules(said: &[(&str, ToolScopes)]) -> ScopeRules {
    let set: ReplicaSetId = "test".parse().expect("a name");
    said.iter()
        .fold(ScopeRules::default(), |rules, (tool, scopes)| {
            let tool = tool.parse().expect("a name");
            rules.with(set.clone(), tool, scopes.clone())
        })
}

#[expect(clippy::expect_used, reason = "as above")]
fn reading(scope: &str) -> ToolScopes {
    ToolScopes::reading([scope]).expect("a scope")
}

#[expect(clippy::expect_used, reason = "as above")]
fn writing(scope: &str) -> ToolScopes {
    ToolScopes::writing([scope]).expect("a scope")
}

fn of(tool: &Arc<Tool>) -> ToolCall {
    call(tool, json!({}))
}

/// A cache over a service that forgets its calls, unlike the mock: holding a call holds its tool.
struct Lone<S> {
    cache: Cache<S>,
    handle: CacheHandle,
}

/// How a write ends.
#[derive(Clone, Copy)]
enum Writes {
    TakeTenSeconds,
    GetLost,
}

fn lone(writes: Writes) -> Lone<impl ToolService + Sync> {
    let count = Arc::new(AtomicU64::new(0));
    let service = service_fn(move |call: ToolCall| {
        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
        let is_write = call.plan().is_write();
        async move {
            match writes {
                Writes::GetLost if is_write => return Err(failure(Delivery::Unknown)),
                Writes::TakeTenSeconds if is_write => sleep(Duration::from_secs(10)).await,
                _ => {}
            }
            Ok(ToolOutput::text(n.to_string()))
        }
    });
    let layer = CacheLayer::default();
    Lone {
        cache: layer.layer(service),
        handle: layer.handle(),
    }
}

impl<S: ToolService> Lone<S> {
    async fn text(&self, call: ToolCall) -> String {
        match self.cache.clone().oneshot(call).await {
            Ok(output) => output.to_text(),
            Err(error) => error.message().to_owned(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn caches_that_share_a_tool_use_their_own_rules() {
    let (get, ship) = (tool("get").read_only().build(), tool("ship").build());
    let said = |scope| rules(&[("get", reading(scope)), ("ship", writing("x"))]);
    let (first, second) = (
        Bench::new(MockService::counting()),
        Bench::new(MockService::counting()),
    );
    for bench in [&first, &second] {
        assert_eq!(bench.text(of(&get)).await, "1");
        assert_eq!(bench.text(of(&get)).await, "1");
    }
    second.handle.set_scope_rules(said("y"));
    for (bench, after) in [(&first, "3"), (&second, "2")] {
        if after == "2" {
            assert_eq!(bench.text(of(&get)).await, "2", "other rules");
        }
        bench.text(of(&ship)).await;
        assert_eq!(bench.text(of(&get)).await, after);
    }
    // as often as they change
    for (round, scope) in ["x", "y", "x"].into_iter().enumerate() {
        first.handle.set_scope_rules(said(scope));
        let before = first.text(of(&get)).await;
        assert_eq!(first.text(of(&get)).await, before, "{round}");
        first.text(of(&ship)).await;
        let stays = first.text(of(&get)).await == before;
        assert_eq!(stays, scope == "y", "{round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_no_caller_holds_is_removed() {
    let bench = lone(Writes::TakeTenSeconds);
    let get = tool("get").read_only().build();
    for _ in 0..2 {
        assert_eq!(bench.text(of(&get)).await, "1");
    }
    let gone = Arc::downgrade(&get);
    drop(get);
    bench.handle.retain_sets(|_| true);
    assert!(gone.upgrade().is_none());
    assert_eq!(bench.handle.tools(), []);
}

#[tokio::test(start_paused = true)]
async fn a_removed_sets_counts_stay_in_the_sums() {
    let bench = lone(Writes::TakeTenSeconds);
    let kept = tool("get").read_only().build();
    bench.text(of(&kept)).await;
    for round in 0..1_000 {
        let set = format!("set-{round}");
        let get = tool("get").set(&set).read_only().build();
        bench.text(of(&get)).await;
        bench.text(of(&get)).await;
        drop(get);
        bench.handle.retain_sets(|set| set.as_str() == "test");
    }
    let tools = bench.handle.tools();
    assert_eq!(tools.len(), 1);
    assert_eq!(bench.handle.stats().hits, 1_000);
    assert_eq!(bench.text(of(&kept)).await, "1", "others are left alone");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_comes_back_finds_no_old_results() {
    let bench = lone(Writes::TakeTenSeconds);
    let make = || tool("get").read_only().build();
    assert_eq!(bench.text(of(&make())).await, "1");
    assert_eq!(bench.text(of(&make())).await, "1", "the same definition");
    bench.handle.retain_sets(|_| false);
    assert_eq!(bench.text(of(&make())).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_write_in_flight_counts_after_its_set_was_removed_and_came_back() {
    let bench = lone(Writes::TakeTenSeconds);
    let set: ReplicaSetId = "test".parse().unwrap();
    let add = bench.cache.clone().oneshot(of(&tool("add").build()));
    let running = tokio::spawn(add);
    settle().await;
    assert!(bench.handle.is_written(&set));
    bench.handle.retain_sets(|_| false);

    let get = tool("get").read_only().build();
    let record = Arc::new(CallRecord::default());
    let read = of(&get).with_record(record.clone());
    assert_eq!(bench.text(read).await, "2");
    assert_eq!(record.facts().cache, CacheStatus::Bypass);
    running.await.unwrap().unwrap();
    assert!(!bench.handle.is_written(&set));
    assert_eq!(bench.text(of(&get)).await, "3");
    assert_eq!(bench.text(of(&get)).await, "3");
}

#[tokio::test(start_paused = true)]
async fn an_unsettled_write_outlives_the_removal_of_its_set() {
    let bench = lone(Writes::GetLost);
    assert_eq!(bench.text(of(&tool("add").build())).await, "unknown");
    bench.handle.retain_sets(|_| false);
    let get = tool("get").read_only().build();
    assert_eq!(bench.text(of(&get)).await, "2");
    assert_eq!(
        bench.text(of(&get)).await,
        "3",
        "it may have landed between"
    );
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(bench.text(of(&get)).await, "4");
    assert_eq!(bench.text(of(&get)).await, "4");
}
