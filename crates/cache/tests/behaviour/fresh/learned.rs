//! Lifetimes that are learned: the burst window, what a server states, and evidence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{
    Caller, Learned, Lifetime, Principal, Profile, SessionId, Tool, ToolCall, ToolOutput,
};
use callward_testkit::{MockService, call, tool};
use serde_json::json;
use tokio::time::advance;

use crate::common::Bench;
use crate::script::check;

const SECOND: Duration = Duration::from_secs(1);

fn get() -> Arc<Tool> {
    let mut profile = Profile::standard();
    profile.read_lifetime = Lifetime::Learned(Learned::default());
    tool("get").read_only().profile(profile).build()
}

fn read_of(tool: &Arc<Tool>, session: &str, id: u64) -> ToolCall {
    let caller = Caller::new(Principal::new("p")).with_session(SessionId::new(session));
    call(tool, json!({ "id": id })).with_caller(Arc::new(caller))
}

#[tokio::test(start_paused = true)]
async fn each_row_about_learned_lifetimes() {
    check(
        r#"
        a burst hit answers only sessions that have not received it
        | profile:learned p#a/get=1 p#b/get=1 p#b/get=2 p#c/get=2 +500ms p#d/get=2 +1ms p#e/get=3
        without a session the principal is one
        | profile:learned get=1 get=2
        a read joins only a run dispatched within the burst window
        | profile:learned server:gate a<p#a/get +500ms b<p#b/get runs=1 +1ms c<p#c/get d<p#d/get
        | runs=2 open:2 a=1 b=1 c=2 d=2
        the answer of an earlier run that ends later is not kept
        | profile:trusted server:reads={"ttlMs":60000} server:takes=10s a<p#a/get +1s
        | server:takes=1s p#b/get=2 a=1 p#c/get=2 runs=2
        a stated lifetime extends a learned one
        | profile:trusted server:reads={"ttlMs":10000} p#a/get=1 +9s p#a/get=1 +2s p#a/get=2
        but not of a server that is not trusted
        | profile:learned server:reads={"ttlMs":10000} p#a/get=1 +9s p#a/get=2 +2s p#a/get=3
        an operator's TTL overrides the server's, longer or shorter
        | profile:stated server:reads={"ttlMs":0} get=1 +59s get=1 +1s get=2
        | server:reads={"ttlMs":1000} +60s get=3 +59s get=3 +1s get=4
        a lifetime is counted from dispatch
        | server:takes=100s get=1 +199s get=1 +1s get=2
        a volatile tool shares nothing before there is evidence
        | profile:learned server:gate a<p#a/volatile b<p#b/volatile runs=2 open:3 a=1 b=2
        | p#c/volatile=3
        a kept idempotent write answers other sessions in the burst window
        | profile:learned p#a/set=1 p#b/set=1 p#a/set=2 p#c/set=2 +500ms p#d/set=3
        | add@elsewhere=4 p#e/set=5
        "#,
    )
    .await;
}

/// A tool that is called again and again: 60 keys, a few seconds apart.
struct World {
    bench: Bench,
    get: Arc<Tool>,
    value: Arc<AtomicU64>,
}

impl World {
    /// At these odds some ten equal repeats are evidence enough.
    fn new() -> Self {
        let value = Arc::new(AtomicU64::new(0));
        let mut config = CacheConfig::default();
        config.stale_odds = 0.4;
        let answer = value.clone();
        Self {
            bench: Bench::with(
                config,
                MockService::new(move |_, _| {
                    let value = answer.load(Ordering::Relaxed);
                    std::future::ready(Ok(ToolOutput::text(value.to_string())))
                }),
            ),
            get: get(),
            value,
        }
    }

    async fn round(&self, session: &str) -> usize {
        let before = self.bench.mock.started();
        for id in 0..60 {
            let answer = self.bench.ask(read_of(&self.get, session, id)).await;
            assert!(answer.is_ok());
        }
        self.bench.mock.started() - before
    }

    fn allowed(&self) -> Duration {
        let status = self.bench.handle.evidence(self.get.set(), self.get.name());
        status.map_or(Duration::ZERO, |status| status.allowed)
    }
}

#[tokio::test(start_paused = true)]
async fn repeats_with_equal_answers_are_evidence_and_a_difference_ends_it() {
    let world = World::new();
    assert_eq!(world.round("a").await, 60);
    for round in 0.. {
        advance(Duration::from_millis(900)).await;
        assert_eq!(world.round("a").await, 60, "no evidence yet");
        if world.allowed() == SECOND {
            // keys that are read at the same time are one observation each second
            assert!(round >= 7, "{round}");
            break;
        }
        assert!(round < 30);
    }
    // the first 100 hits of a bucket are executed to verify it
    for session in ["b", "c"] {
        advance(Duration::from_millis(900)).await;
        world.round(session).await;
    }
    advance(Duration::from_millis(900)).await;
    let executed = world.round("d").await;
    assert!(executed < 60, "{executed}");
    let counts = world.bench.stats().counts;
    assert!(counts.verified >= 100 && counts.differed == 0, "{counts:?}");

    // a change that no write announces: a key that differed once has only its own evidence
    world.value.store(1, Ordering::Relaxed);
    advance(2 * SECOND).await;
    assert_eq!(world.round("e").await, 60, "older than what is allowed");
    world.value.store(2, Ordering::Relaxed);
    advance(Duration::from_millis(900)).await;
    assert_eq!(world.round("f").await, 60);
}

#[tokio::test(start_paused = true)]
async fn evidence_under_other_epochs_does_not_count() {
    let world = World::new();
    for round in 0..5 {
        assert_eq!(world.round("a").await, 60, "{round}");
        let write = call(&tool("add").build(), json!({}));
        world.bench.ask(write).await.unwrap();
        advance(Duration::from_millis(900)).await;
    }
    assert_eq!(world.allowed(), Duration::ZERO);
}
