//! What an answer says of its own freshness.

use std::time::Duration;

use callward_cache::{CacheConfig, Partition, RefusalReason};
use callward_core::ToolOutput;
use callward_testkit::MockService;
use serde_json::json;

use super::{SECOND, TTL, answer, pass, with};
use crate::common::{Bench, by, read, set};

fn saying(output: ToolOutput) -> MockService {
    MockService::new(move |_, _| std::future::ready(Ok(output.clone())))
}

async fn lives(output: ToolOutput) -> Duration {
    let bench = Bench::new(saying(output));
    bench.ask(read()).await.unwrap();
    let mut lived = Duration::ZERO;
    loop {
        bench.ask(read()).await.unwrap();
        if bench.mock.started() > 1 {
            return lived;
        }
        pass(SECOND).await;
        lived += SECOND;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stated_lifetime_counts_up_to_the_plans() {
    for (output, expected) in [
        (answer("a"), TTL),
        (
            with(&json!({"ttlMs": 60_000, "cacheScope": "public"})),
            60 * SECOND,
        ),
        (with(&json!({"ttlMs": 5000})), 5 * SECOND),
        (with(&json!({"_meta": {"ttlMs": 9_000_000}})), TTL),
        (
            with(&json!({"_meta": {"io.callward/cache": {"age_ms": 100_000}}})),
            200 * SECOND,
        ),
        (with(&json!({"ttlMs": "5000"})), TTL),
    ] {
        let body = output.to_text();
        assert_eq!(lives(output).await, expected, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_store_answer_is_not_shared_in_flight() {
    for output in [
        with(&json!({"ttlMs": 0})),
        with(&json!({"_meta": {"cache_hint": "no-cache"}})),
        with(&json!({"_meta": {"io.callward/cache": {"status": "stale"}}})),
    ] {
        let bench = Bench::new(MockService::new(move |_, _| {
            let output = output.clone();
            async move {
                tokio::time::sleep(SECOND).await;
                Ok(output)
            }
        }));
        let (first, second) = tokio::join!(bench.ask(read()), bench.ask(read()));
        first.and(second).unwrap();
        assert_eq!(bench.mock.started(), 2);
        let refused = bench.stats().refusals.get(RefusalReason::NoStore);
        assert_eq!((refused, bench.stats().stored), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_private_answer_is_not_shared_between_principals() {
    let shared = || super::config(|config| config.partition = Partition::Shared);
    let asked = async |output: ToolOutput, config: CacheConfig| {
        let bench = Bench::with(config, saying(output));
        for who in ["a", "b", "a"] {
            bench.ask(by(who, read())).await.unwrap();
        }
        bench.mock.started()
    };
    let private = with(&json!({"cacheScope": "private"}));
    assert_eq!(asked(answer("a"), shared()).await, 1);
    assert_eq!(asked(private.clone(), shared()).await, 3);
    assert_eq!(asked(private, CacheConfig::default()).await, 2);
    // and what is called public is not given to others on that account
    let public = with(&json!({"cacheScope": "public"}));
    assert_eq!(asked(public, CacheConfig::default()).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_writes_stated_lifetime_shortens_the_plans() {
    let bench = Bench::new(saying(with(&json!({"ttlMs": 2_000}))));
    bench.ask(set(1)).await.unwrap();
    pass(SECOND).await;
    bench.ask(set(1)).await.unwrap();
    assert_eq!(bench.mock.started(), 1);
    pass(SECOND).await;
    bench.ask(set(1)).await.unwrap();
    assert_eq!(bench.mock.started(), 2);

    let never = Bench::new(saying(with(&json!({"ttlMs": 0}))));
    for _ in 0..2 {
        never.ask(set(1)).await.unwrap();
    }
    assert_eq!(never.mock.started(), 2);
}
