//! The same promise on real threads: no read answers a state from before a write that had ended;
//! with one value and with several, with and without rules, and with a large and a small store.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_cache::{CacheConfig, CacheLayer, CacheStats, ToolScopes};
use callward_core::ToolOutput;
use callward_testkit::{MockService, call, tool};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tower::{Layer, ServiceExt};

const TASKS: usize = 8;
const ROUNDS: usize = 500;
const KEYS: usize = 16;

/// The writes to a key that took effect, and that were answered.
#[derive(Debug, Default)]
struct Key {
    landed: AtomicU64,
    answered: AtomicU64,
}

/// Reads and writes keys from all threads; if `said`, by a rule for each key.
async fn race(keys: usize, said: bool, max_bytes: u64) -> CacheStats {
    let all: Arc<[Key; KEYS]> = Arc::default();
    let tools = || [tool("get").read_only().build(), tool("bump").build()];
    let mut config = CacheConfig::default();
    config.max_bytes = max_bytes;
    let own = ["key:{key}"];
    let scopes = [ToolScopes::reading(own), ToolScopes::writing(own)];
    for (tool, scopes) in tools().iter().zip(scopes).filter(|_| said) {
        let (set, name) = (tool.set().clone(), tool.name().clone());
        config.scopes = config.scopes.with(set, name, scopes.unwrap());
    }
    let inside = all.clone();
    let server = MockService::new(move |call, n| {
        let all = inside.clone();
        async move {
            for _ in 0..n % 3 {
                yield_now().await;
            }
            let arguments: Value = serde_json::from_slice(call.arguments()).unwrap_or_default();
            let key = &all[arguments["key"].as_u64().unwrap_or(0) as usize];
            let written = u64::from(call.plan().is_write());
            let value = key.landed.fetch_add(written, Ordering::SeqCst);
            yield_now().await;
            Ok(ToolOutput::text(value.to_string()))
        }
    });
    let layer = CacheLayer::new(config);
    let cache = layer.layer(server);
    let task = |task| {
        let (all, cache, [get, bump]) = (all.clone(), cache.clone(), tools());
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let number = (round / 3 + task) % keys;
                let key: &Key = &all[number];
                let writes = (round + task * 7) % 29 == 0;
                let asked = call(if writes { &bump } else { &get }, json!({ "key": number }));
                let least = key.answered.load(Ordering::SeqCst);
                let answer = cache.clone().oneshot(asked).await.unwrap();
                let most = key.landed.load(Ordering::SeqCst);
                let value: u64 = answer.to_text().parse().unwrap();
                assert!(
                    writes || (least..=most).contains(&value),
                    "{least} {value} {most}"
                );
                key.answered.fetch_add(writes.into(), Ordering::SeqCst);
            }
        })
    };
    for ended in join_all((0..TASKS).map(task)).await {
        ended.unwrap();
    }
    let stats = layer.handle().stats();
    let reads = stats.hits + stats.misses + stats.joined + stats.bypassed;
    assert_eq!(reads + stats.invalidations, (TASKS * ROUNDS) as u64);
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
