//! Explanations: retries, hedges, guards, times, rates and routes, as text and as data.

use std::time::Duration;

use callward::breaker::{BreakerConfig, Subject};
use callward::cache::CacheConfig;
use callward::core::refine::Applied;
use callward::limit::Cap;
use callward::retry::RetryConfig;
use callward::retry::hedge::HedgeConfig;
use callward::{
    Annotations, ArgumentRule, Condition, FreshnessMode, LimitsConfig, Profile, Server, ServerId,
    Stack, StackBuilder, ToolSpec, Tools, When,
};
use serde_json::{Value, json};

use crate::bed::has;

fn replica(id: &str) -> Server {
    let hints = Annotations::default;
    let mut tools = Tools::new(id).unwrap();
    for (name, hints) in [
        (
            "get_order",
            hints().with_read_only(true).with_rate_limit(90.0),
        ),
        ("create_order", hints()),
        (
            "set_status",
            hints().with_idempotent(true).with_destructive(false),
        ),
        ("delete_order", hints().with_destructive(true)),
    ] {
        let answer = |_: Value| async { Ok::<_, String>("done") };
        tools = tools
            .tool(ToolSpec::new(name).annotations(hints), answer)
            .unwrap();
    }
    Server::new(tools).in_set("shop".parse().unwrap())
}

async fn stack(builder: StackBuilder) -> Stack {
    let one = replica("one").calls_per_minute(600.0).weight(80);
    let servers = [one, replica("two").weight(60), replica("light").weight(10)];
    let builder = servers.into_iter().fold(builder, StackBuilder::server);
    builder.build().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_explained_with_its_hedge_rates_times_and_verifier() {
    let mut limits = LimitsConfig::default();
    limits.rate.per_principal = Some(120.0);
    limits.progress_cap = Cap::Times(3);
    let builder = Stack::builder().hedge(HedgeConfig::default());
    let stack = stack(builder.limits(limits)).await;
    let read = stack.explain("shop.get_order").unwrap();
    let parts = [
        "slower than 95 of 100 such calls",
        "60 s, and 180 s with progress",
        "90 calls a minute for its tool, a call waits up to 30 s for its turn",
        "120 calls a minute for its principal",
        "600 calls a minute for all calls there together",
        "opens after 3 failures in a row, for 30 s\n",
    ];
    has(&read, &parts);
    assert!(!read.to_string().contains("check its outcome"), "{read}");
    assert!(read.verifier().is_none());

    let write = stack.explain("shop.create_order").unwrap();
    let parts = [
        "however it fails, check its outcome with `shop__get_order`",
        "it is not a read",
        "this call probes it only if no safe call comes",
        "after 5 failures in a row for one session, it answers in the server's place for 2 s",
    ];
    has(&write, &parts);
    let verifier = write.verifier().map(ToString::to_string);
    assert_eq!(verifier.as_deref(), Some("shop__get_order"));
    // safe to repeat, and still no two at a time
    let idempotent = stack.explain("shop.set_status").unwrap();
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
    let read = stack.explain("shop.get_order").unwrap();
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
            let call = stack.call("shop.get_order", json!({"id": id}));
            call.await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let expected = "not cached beyond the burst window (500 ms): its TTL is 0 s";
    has(stack.explain("shop.get_order").unwrap(), &[expected]);
    let lifetimes = stack.learned_lifetimes();
    assert_eq!(lifetimes.values().next().unwrap().served, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_server_that_would_get_a_call_now_is_explained() {
    let stack = stack(Stack::builder()).await;
    let delete = stack.explain("shop.delete_order").unwrap();
    let decision = delete.route.as_ref().unwrap();
    assert_eq!(decision.strategy, "peak_ewma");
    assert_eq!((decision.servers, decision.eligible), (3, 2));
    let [one, two] = ["one", "two"].map(|id| id.parse::<ServerId>().unwrap());
    let chosen = decision.chosen.clone().unwrap();
    let (weight, other, its_weight) = match chosen == one {
        true => (80, &two, 60),
        false => (60, &one, 80),
    };
    assert_eq!(decision.alternates, std::slice::from_ref(other));
    let first = format!("{chosen} (weight {weight})  <- chosen now");
    let next = format!("{other} (weight {its_weight})  <- asked if");
    let light = "light (weight 10), never: it is too light";
    has(&delete, &[&first, &next, light]);
    let light = decision.candidates.iter().find(|one| one.weight == 10);
    assert_eq!(light.unwrap().unfit, Some("too_light"));

    stack.breaker_set().force_open(&one, Subject::Server);
    let delete = stack.explain("shop.delete_order").unwrap();
    assert_eq!(delete.route.as_ref().unwrap().chosen, Some(two));
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
    let mut once = RetryConfig::default();
    once.max_attempts = 1;
    let light = replica("light").weight(10);
    let builder = Stack::builder()
        .server(light.refine_tool("delete_order".parse().unwrap(), rule))
        .cache(cache)
        .retry(once);
    let stack = builder.build().await.unwrap();
    let explain = |arguments| stack.explain_call("shop.delete_order", arguments).unwrap();
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
