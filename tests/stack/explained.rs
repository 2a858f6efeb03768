//! Explanations: retries, hedges, guards, times, rates and routes, as text and as data.

use std::sync::Arc;
use std::time::Duration;

use callward::breaker::{BreakerConfig, Subject};
use callward::cache::CacheConfig;
use callward::core::refine::Applied;
use callward::limit::{Cap, PrincipalLimitConfig};
use callward::retry::hedge::HedgeConfig;
use callward::{
    Annotations, ArgumentRule, Condition, FreshnessMode, LimitsConfig, Profile, Server, Stack,
    StackBuilder, When,
};
use callward_testkit::{MockServer, MockService};
use serde_json::json;

use crate::bed::{has, in_set, tool, wipe};

fn replica(id: &str) -> Arc<MockServer> {
    let reads = json!({"readOnlyHint": true, "rateLimitHint": 90});
    let repeats = json!({"idempotentHint": true, "destructiveHint": false});
    let tools = vec![
        tool("get_order", reads),
        tool("create_order", json!({})),
        tool("set_status", repeats),
        wipe("delete_order"),
    ];
    MockServer::new(id, tools, MockService::counting())
}

async fn stack(builder: StackBuilder) -> Stack {
    let with = |id: &str, server: Server| match id {
        "one" => server.calls_per_minute(600.0).weight(80),
        "two" => server.weight(60),
        _ => server.weight(10),
    };
    in_set(builder, &["one", "two", "light"].map(replica), with).await
}

#[tokio::test(start_paused = true)]
async fn a_call_is_explained_with_its_hedge_rates_times_and_verifier() {
    let mut limits = LimitsConfig::default();
    limits.progress_cap = Cap::Times(3);
    let builder = Stack::builder().hedge(HedgeConfig::default());
    let mut of_principals = PrincipalLimitConfig::default();
    of_principals.generous = true;
    let builder = builder.principal_limits(of_principals);
    let stack = stack(builder.limits(limits)).await;
    let read = stack.explain("set.get_order").unwrap();
    let parts = [
        "slower than 95 of 100 such calls",
        "60 s, and 180 s with progress",
        "90 calls a minute for its tool, a call waits up to 30 s for its turn",
        "`calls_per_minute` of 3000 for its principal, and what exceeds it is refused",
        "600 calls a minute for all calls there together",
        "opens after 3 failures in a row, for 30 s\n",
    ];
    has(&read, &parts);
    assert!(!read.to_string().contains("check its outcome"), "{read}");
    assert!(read.verifier().is_none());

    let write = stack.explain("set.create_order").unwrap();
    let parts = [
        "however it fails, check its outcome with `set__get_order`",
        "it is not a read",
        "`writes_per_minute` of 600 for its principal",
        "this call probes it only if no safe call comes",
        "after 5 failures in a row for one session, it answers in the server's place for 2 s",
    ];
    has(&write, &parts);
    let verifier = write.verifier().map(ToString::to_string);
    assert_eq!(verifier.as_deref(), Some("set__get_order"));
    // safe to repeat, and still no two at a time
    let idempotent = stack.explain("set.set_status").unwrap();
    has(&idempotent, &["it is not a read"]);
    assert!(!idempotent.to_string().contains("probes it only"));
}

#[tokio::test(start_paused = true)]
async fn what_is_off_is_not_claimed() {
    let mut limits = LimitsConfig::default();
    limits.rate.tools = false;
    limits.progress_cap = Cap::Times(1);
    let mut breaker = BreakerConfig::default();
    (breaker.failures, breaker.failure_rate) = (0, Some(0.29));
    let builder = Stack::builder().breaker(breaker);
    let stack = stack(builder.loop_guard(None).limits(limits)).await;
    let read = stack.explain("set.get_order").unwrap();
    let text = read.to_string();
    has(&text, &["60 s\n", "opens after 29 % of failures, for 30 s"]);
    for word in ["loop_guard", "hedge", "progress", "for its tool"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_without_a_ttl_is_explained_so_whatever_the_evidence() {
    let mut profile = Profile::standard();
    profile.read_ttl = Duration::ZERO;
    let builder = Stack::builder().freshness(FreshnessMode::Learned);
    let stack = stack(builder.profile(profile)).await;
    // twice each, so late that it counts
    for id in 0..400 {
        for _ in 0..2 {
            let call = stack.call("set.get_order", json!({"id": id}));
            call.await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let expected = "not cached beyond the burst window (500 ms): its TTL is 0 s";
    has(stack.explain("set.get_order").unwrap(), &[expected]);
    let lifetimes = stack.learned_lifetimes();
    assert_eq!(lifetimes.values().next().unwrap().served, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_server_that_would_get_a_call_now_is_explained() {
    let stack = stack(Stack::builder()).await;
    let delete = stack.explain("set.delete_order").unwrap();
    let decision = delete.route.as_ref().unwrap();
    assert_eq!(decision.strategy, "round_robin");
    assert_eq!((decision.servers, decision.eligible), (3, 2));
    let parts = [
        "one (weight 80)  <- chosen now",
        "two (weight 60)  <- asked if",
        "light (weight 10), never: it is too light",
    ];
    has(&delete, &parts);

    let one = "one".parse().unwrap();
    stack.breaker_set().force_open(&one, Subject::Server);
    let delete = stack.explain("set.delete_order").unwrap();
    has(&delete, &["two (weight 60)  <- chosen now"]);
    let of_one = delete.candidates.iter().find(|it| it.server == one);
    assert_eq!(of_one.unwrap().why_not.unwrap().as_str(), "held_open");
}

#[tokio::test(start_paused = true)]
async fn an_explanation_heeds_settings_and_every_hint_of_a_rule() {
    let hints = Annotations::default().with_requires_confirmation(true);
    let forced = When::argument("force", Condition::present()).unwrap();
    let rule = ArgumentRule::new(forced, hints.with_estimated_duration(2000.0)).unwrap();
    let mut cache = CacheConfig::default();
    cache.enabled = false;
    let builder = Stack::builder().cache(cache);
    let refined = |_: &str, server: Server| {
        let delete = "delete_order".parse().unwrap();
        server.weight(10).refine_tool(delete, rule.clone())
    };
    let stack = in_set(builder, &[replica("light")], refined).await;
    let explain = |arguments| stack.explain_call("set.delete_order", arguments).unwrap();
    let forced = explain(r#"{"force":1}"#);
    assert_eq!(forced.applied(), Applied::Rule(0));
    assert!(!forced.candidates[0].may_take(forced.plan()));
    let parts = [
        "1. where force is present: the call may destroy or overwrite something  <- this call",
        "light (weight 10), never: it is too light",
        "the cache is off",
        "20 s, and 200 s with progress, usually 2 s",
        "requiresConfirmation = true: operator, rule 1 of this tool: force is present",
    ];
    has(forced, &parts);
    let perhaps = explain(r#"{"force":null}"#);
    has(perhaps, &["(force is present: is not certain here)"]);
}
