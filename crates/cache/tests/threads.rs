//! The same promise on real threads: no read answers a state from before a write that had ended;
//! with one value and with several, with and without rules, and with a large and a small store.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests themselves"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_cache::{Cache, CacheConfig, CacheLayer, CacheStats, ToolScopes};
use callward_core::{ToolCall, ToolOutput};
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
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
        let value: u64 = answer.unwrap().parse().unwrap();
        assert!((least..=most).contains(&value), "{least} {value} {most}");
    }
}

/// Reads and writes keys from all threads; if `said`, by a rule for each key.
async fn race(keys: u64, said: bool, max_bytes: u64) -> CacheStats {
    let counters = Arc::new(Counters::default());
    let tools = || [tool("get").read_only().build(), tool("bump").build()];
    let mut config = CacheConfig::default();
    config.max_bytes = max_bytes;
    if said {
        let own = ["key:{key}"];
        let scopes = [ToolScopes::reading(own), ToolScopes::writing(own)];
        for (tool, scopes) in tools().iter().zip(scopes) {
            let (set, name) = (tool.set().clone(), tool.name().clone());
            config.scopes = config.scopes.with(set, name, scopes.unwrap());
        }
    }
    let layer = CacheLayer::new(config);
    let cache = layer.layer(counters.service());
    let task = |task| {
        let (counters, cache, [get, bump]) = (counters.clone(), cache.clone(), tools());
        tokio::spawn(async move {
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
    };
    for ended in join_all((0..TASKS).map(task)).await {
        ended.unwrap();
    }
    let stats = layer.handle().stats();
    let reads = stats.hits + stats.misses + stats.joined + stats.bypassed;
    assert_eq!(reads + stats.invalidations, TASKS * ROUNDS);
    assert!(stats.hits > 0, "{stats:?}");
    stats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_on_any_thread_sees_every_write_that_ended_before_it() {
    for (keys, said) in [(1, false), (KEYS, false), (2, true), (KEYS, true)] {
        race(keys, said, 1 << 20).await;
    }
    let stats = race(KEYS, true, 2_500).await;
    assert!(stats.evicted > 0, "{stats:?}");
}
