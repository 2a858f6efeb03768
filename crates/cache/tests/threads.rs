//! The same promise on real threads: no read answers what was before a write that had ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tollgate_cache::{Cache, CacheLayer};
use tollgate_core::{ToolCall, ToolOutput};
use tollgate_testkit::{MockService, call, tool};
use tower::{Layer, ServiceExt};

const TASKS: u64 = 8;
const ROUNDS: u64 = 500;

/// A server that counts its writes, and how many of them were answered.
#[derive(Debug, Clone, Default)]
struct Counter {
    landed: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
}

impl Counter {
    fn service(&self) -> MockService {
        let landed = self.landed.clone();
        MockService::new(move |call, n| {
            let landed = landed.clone();
            async move {
                for _ in 0..n % 3 {
                    tokio::task::yield_now().await;
                }
                let value = if call.plan().effect.as_str() == "read_only" {
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

    async fn write(&self, cache: Cache<MockService>, write: ToolCall) {
        assert!(cache.oneshot(write).await.is_ok());
        self.answered.fetch_add(1, Ordering::SeqCst);
    }

    async fn read(&self, cache: Cache<MockService>, read: ToolCall) {
        let least = self.answered.load(Ordering::SeqCst);
        let answer = cache.oneshot(read).await.map(|output| output.to_text());
        let most = self.landed.load(Ordering::SeqCst);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_on_any_thread_sees_every_write_that_ended_before_it() {
    let counter = Counter::default();
    let layer = CacheLayer::default();
    let cache = layer.layer(counter.service());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (counter, cache) = (counter.clone(), cache.clone());
            tokio::spawn(async move {
                let get = tool("get").read_only().build();
                let bump = tool("bump").build();
                for round in 0..ROUNDS {
                    if (round + task * 7) % 29 == 0 {
                        counter.write(cache.clone(), call(&bump, json!({}))).await;
                    } else {
                        counter.read(cache.clone(), call(&get, json!({}))).await;
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
}
