//! Lifetimes that are learned: the burst window, what a server states, and evidence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{
    CacheRule, Caller, Learned, Lifetime, Principal, Profile, SessionId, Tool, ToolCall, ToolOutput,
};
use callward_testkit::{MockService, call, tool};
use serde_json::json;

use super::{SECOND, pass, with};
use crate::common::Bench;

const BURST: Duration = Duration::from_millis(500);

fn learned(change: impl FnOnce(&mut Learned)) -> Profile {
    let mut rule = Learned::default();
    change(&mut rule);
    let mut profile = Profile::standard();
    profile.read_lifetime = Lifetime::Learned(rule);
    profile.idempotent_lifetime = Lifetime::Learned(rule);
    profile
}

fn get() -> Arc<Tool> {
    tool("get").read_only().profile(learned(|_| ())).build()
}

fn by_session(session: &str, call: ToolCall) -> ToolCall {
    let caller = Caller::new(Principal::new("p")).with_session(SessionId::new(session));
    call.with_caller(Arc::new(caller))
}

fn read_of(tool: &Arc<Tool>, session: &str, id: u64) -> ToolCall {
    by_session(session, call(tool, json!({"id": id})))
}

fn saying(output: ToolOutput) -> MockService {
    MockService::new(move |_, _| std::future::ready(Ok(output.clone())))
}

#[tokio::test(start_paused = true)]
async fn a_burst_hit_answers_only_sessions_that_have_not_received_it() {
    let bench = Bench::new(MockService::counting());
    let get = get();
    let read = async |session: &str| bench.text(read_of(&get, session, 1)).await;
    assert_eq!(read("a").await, "1");
    assert_eq!(read("b").await, "1");
    assert_eq!(read("b").await, "2", "it has received the first answer");
    assert_eq!(read("c").await, "2");
    pass(BURST).await;
    assert_eq!(read("d").await, "2");
    pass(Duration::from_millis(1)).await;
    assert_eq!(read("e").await, "3");
    // without a session the principal is one
    let alone = || call(&get, json!({"id": 2}));
    assert_eq!(bench.text(alone()).await, "4");
    assert_eq!(bench.text(alone()).await, "5");
}

#[tokio::test(start_paused = true)]
async fn a_read_joins_only_a_run_dispatched_within_the_burst_window() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let get = get();
    let first = bench.start(read_of(&get, "a", 1)).await;
    pass(BURST).await;
    let joins = bench.start(read_of(&get, "b", 1)).await;
    assert_eq!(bench.mock.started(), 1);
    pass(Duration::from_millis(1)).await;
    let next = bench.start(read_of(&get, "c", 1)).await;
    let shares = bench.start(read_of(&get, "d", 1)).await;
    assert_eq!(bench.mock.started(), 2);
    gate.open(2);
    let mut texts = Vec::new();
    for running in [first, joins, next, shares] {
        texts.push(running.await.unwrap().unwrap().to_text());
    }
    assert_eq!(texts, ["1", "1", "2", "2"]);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_an_earlier_run_that_ends_later_is_not_kept() {
    // the first call takes 10 s, the second one 1 s
    let bench = Bench::new(MockService::new(|_, n| async move {
        tokio::time::sleep(if n == 1 { 10 } else { 1 } * SECOND).await;
        Ok(with(&json!({"ttlMs": 60_000, "n": n})))
    }));
    let get = get();
    let slow = bench.start(read_of(&get, "a", 1)).await;
    pass(SECOND).await;
    bench.ask(read_of(&get, "b", 1)).await.unwrap();
    slow.await.unwrap().unwrap();
    let kept = bench.ask(read_of(&get, "c", 1)).await.unwrap();
    assert!(
        std::str::from_utf8(kept.body())
            .unwrap()
            .contains("\"n\":2")
    );
    assert_eq!(bench.mock.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_volatile_tool_shares_nothing_before_there_is_evidence() {
    let (mock, gate) = MockService::gated();
    let bench = Bench::new(mock);
    let clock = tool("now").read_only().profile(learned(|_| ())).build();
    let rule = CacheRule::Store {
        ttl: 300 * SECOND,
        lifetime: Lifetime::Learned({
            let mut rule = Learned::default();
            rule.volatile = true;
            rule
        }),
    };
    let mut plan = (**clock.plan()).clone();
    plan.cache = rule;
    let clock = Arc::new(Tool::new(
        clock.set().clone(),
        clock.definition().clone(),
        clock.resolved().clone(),
        plan,
    ));
    let first = bench.start(read_of(&clock, "a", 1)).await;
    let second = bench.start(read_of(&clock, "b", 1)).await;
    assert_eq!(bench.mock.started(), 2);
    gate.open(3);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    bench.text(read_of(&clock, "c", 1)).await;
    assert_eq!(bench.mock.started(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_stated_lifetime_extends_a_learned_one_only_if_trusted() {
    for (extends, expected) in [(true, 1), (false, 2)] {
        let bench = Bench::new(saying(with(&json!({"ttlMs": 10_000}))));
        let profile = learned(|rule| rule.extends = extends);
        let get = tool("get").read_only().profile(profile).build();
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        pass(9 * SECOND).await;
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        assert_eq!(bench.mock.started(), expected, "{extends}");
        pass(2 * SECOND).await;
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        assert_eq!(bench.mock.started(), 2 + usize::from(!extends));
    }
}

#[tokio::test(start_paused = true)]
async fn an_operators_ttl_overrides_the_servers() {
    let mut profile = Profile::standard();
    profile.read_ttl = 60 * SECOND;
    profile.read_lifetime = Lifetime::Stated;
    let get = tool("get").read_only().profile(profile).build();
    for said in [json!({"ttlMs": 0}), json!({"ttlMs": 1000})] {
        let bench = Bench::new(saying(with(&said)));
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        pass(59 * SECOND).await;
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        assert_eq!(bench.mock.started(), 1, "{said}");
        pass(SECOND).await;
        bench.ask(read_of(&get, "a", 1)).await.unwrap();
        assert_eq!(bench.mock.started(), 2, "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_is_counted_from_dispatch() {
    let bench = Bench::new(MockService::new(|_, n| async move {
        tokio::time::sleep(100 * SECOND).await;
        Ok(ToolOutput::text(n.to_string()))
    }));
    let read = || call(&tool("get").read_only().build(), json!({}));
    assert_eq!(bench.text(read()).await, "1");
    pass(199 * SECOND).await;
    assert_eq!(bench.text(read()).await, "1");
    pass(SECOND).await;
    assert_eq!(bench.text(read()).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_kept_idempotent_write_answers_other_sessions_in_the_burst_window() {
    let bench = Bench::new(MockService::counting());
    let set = tool("set").idempotent().profile(learned(|_| ())).build();
    let write = async |session: &str| bench.text(read_of(&set, session, 1)).await;
    assert_eq!(write("a").await, "1");
    assert_eq!(write("b").await, "1", "a double submit");
    assert_eq!(write("a").await, "2", "the same session means it");
    assert_eq!(write("c").await, "2");
    pass(BURST).await;
    assert_eq!(write("d").await, "3");
    let other = call(&tool("add").set("elsewhere").build(), json!({}));
    bench.ask(other).await.unwrap();
    assert_eq!(write("e").await, "5", "any write ends it");
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
            self.bench
                .ask(read_of(&self.get, session, id))
                .await
                .unwrap();
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
        pass(Duration::from_millis(900)).await;
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
        pass(Duration::from_millis(900)).await;
        world.round(session).await;
    }
    pass(Duration::from_millis(900)).await;
    let executed = world.round("d").await;
    assert!(executed < 60, "{executed}");
    let counts = world.bench.stats().counts;
    assert!(counts.verified >= 100 && counts.differed == 0, "{counts:?}");

    // a change that no write announces: a key that differed once has only its own evidence
    world.value.store(1, Ordering::Relaxed);
    pass(2 * SECOND).await;
    assert_eq!(world.round("e").await, 60, "older than what is allowed");
    world.value.store(2, Ordering::Relaxed);
    pass(Duration::from_millis(900)).await;
    assert_eq!(world.round("f").await, 60);
}

#[tokio::test(start_paused = true)]
async fn evidence_under_other_epochs_does_not_count() {
    let world = World::new();
    for round in 0..5 {
        assert_eq!(world.round("a").await, 60, "{round}");
        let write = call(&tool("add").build(), json!({}));
        world.bench.ask(write).await.unwrap();
        pass(Duration::from_millis(900)).await;
    }
    assert_eq!(world.allowed(), Duration::ZERO);
}
