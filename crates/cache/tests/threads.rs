//! The same promise on real threads: no read answers a state from before a write that had ended;
//! with one value and with several, with and without rules, and with a large and a small store.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_cache::{Cache, CacheConfig, CacheLayer, CacheStats, ScopeRules, ToolScopes};
use callward_core::{Tool, ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

const TASKS: u64 = 8;
const ROUNDS: u64 = 500;
const KEYS: u64 = 16;

/// A server that counts the writes to each key, and how many of them were answered.
#[derive(Debug, Default)]
struct Counters {
    landed: [AtomicU64; KEYS as usize],
    answered: [AtomicU64; KEYS as usize],
}

fn at(all: &[AtomicU64], key: u64) -> &AtomicU64 {
    &all[key as usize]
}

impl Counters {
    fn service(self: &Arc<Self>) -> MockService {
        let this = self.clone();
        MockService::new(move |call, n| {
            let this = this.clone();
            async move {
                for _ in 0..n % 3 {
                    tokio::task::yield_now().await;
                }
                let arguments: Value = serde_json::from_slice(call.arguments()).unwrap_or_default();
                let landed = at(&this.landed, arguments["key"].as_u64().unwrap_or(0));
                let value = if call.tool().name().as_str() == "get" {
                    landed.load(Ordering::SeqCst)
                } else {
                    landed.fetch_add(1, Ordering::SeqCst)
                };
                for _ in 0..n % 2 {
                    tokio::task::yield_now().await;
                }
                Ok(ToolOutput::text(value.to_string()))
            }
        })
    }

    async fn write(&self, cache: Cache<MockService>, write: ToolCall, key: u64) {
        assert!(cache.oneshot(write).await.is_ok());
        at(&self.answered, key).fetch_add(1, Ordering::SeqCst);
    }

    async fn read(&self, cache: Cache<MockService>, read: ToolCall, key: u64) {
        let least = at(&self.answered, key).load(Ordering::SeqCst);
        let answer = cache.oneshot(read).await.map(|output| output.to_text());
        let most = at(&self.landed, key).load(Ordering::SeqCst);
        let value: u64 = answer
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(u64::MAX);
        assert!(
            least <= value && value <= most,
            "{least} <= {value} <= {most}"
        );
    }
}

fn get() -> Arc<Tool> {
    tool("get").read_only().build()
}

fn bump() -> Arc<Tool> {
    tool("bump").build()
}

/// Reads and writes keys from all threads; if `said`, by a rule for each key.
async fn race(keys: u64, said: bool, max_bytes: u64) -> CacheStats {
    let counters = Arc::new(Counters::default());
    let mut config = CacheConfig::default();
    config.max_bytes = max_bytes;
    if said {
        let own = ["key:{key}"];
        let (get, bump) = (get(), bump());
        config.scopes = ScopeRules::default()
            .with(
                get.set().clone(),
                get.name().clone(),
                ToolScopes::reading(own).unwrap(),
            )
            .with(
                bump.set().clone(),
                bump.name().clone(),
                ToolScopes::writing(own).unwrap(),
            );
    }
    let layer = CacheLayer::new(config);
    let cache = layer.layer(counters.service());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (counters, cache) = (counters.clone(), cache.clone());
            tokio::spawn(async move {
                let (get, bump) = (get(), bump());
                for round in 0..ROUNDS {
                    let key = (round / 3 + task) % keys;
                    let arguments = json!({ "key": key });
                    let cache = cache.clone();
                    if (round + task * 7) % 29 == 0 {
                        counters.write(cache, call(&bump, arguments), key).await;
                    } else {
                        counters.read(cache, call(&get, arguments), key).await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let stats = layer.handle().stats();
    let reads = stats.hits + stats.misses + stats.joined + stats.bypassed;
    assert_eq!(reads + stats.invalidations, TASKS * ROUNDS);
    assert!(stats.hits > 0, "{stats:?}");
    stats
}

const AMPLE: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_on_any_thread_sees_every_write_that_ended_before_it() {
    race(1, false, AMPLE).await;
    race(KEYS, false, AMPLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_of_one_key_sees_every_write_to_it() {
    race(2, true, AMPLE).await;
    race(KEYS, true, AMPLE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_read_is_stale_while_entries_are_evicted() {
    let stats = race(KEYS, true, 2_500).await;
    assert!(stats.evicted > 0, "{stats:?}");
}
