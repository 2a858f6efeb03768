//! Explanations: retries, hedges, guards, times and rates, as text and as data.

use std::time::Duration;

use callward::breaker::BreakerConfig;
use callward::limit::Cap;
use callward::retry::hedge::HedgeConfig;
use callward::{
    Annotations, FreshnessMode, LimitsConfig, Profile, Server, Stack, StackBuilder, ToolSpec, Tools,
};
use serde_json::{Value, json};

use crate::bed::has;

fn replica(id: &str) -> Server {
    let mut tools = Tools::new(id).unwrap();
    for (name, hints) in [
        (
            "get_order",
            Annotations::default()
                .with_read_only(true)
                .with_rate_limit(90.0),
        ),
        ("create_order", Annotations::default()),
        (
            "set_status",
            Annotations::default()
                .with_idempotent(true)
                .with_destructive(false),
        ),
    ] {
        let spec = ToolSpec::new(name).annotations(hints);
        tools = tools
            .tool(spec, |_: Value| async { Ok::<_, String>("done") })
            .unwrap();
    }
    Server::new(tools).in_set("shop".parse().unwrap())
}

async fn stack(builder: StackBuilder) -> Stack {
    let one = replica("one").calls_per_minute(600.0);
    builder
        .server(one)
        .server(replica("two"))
        .build()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_read_is_told_its_hedge_its_rates_and_its_times() {
    let mut limits = LimitsConfig::default();
    limits.rate = limits.rate.with_per_principal(Some(120.0));
    limits.progress_cap = Cap::Times(3);
    let builder = Stack::builder()
        .hedge(HedgeConfig::default())
        .limits(limits);
    let stack = stack(builder).await;
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
    assert_eq!(read.hedge().map(|hedge| hedge.percentile), Some(95));
    assert_eq!(read.calls_per_minute(), Some(90.0));
    assert_eq!(read.calls_per_minute_of_principal(), Some(120.0));
    assert_eq!(read.attempt_cap(), Duration::from_secs(180));
    assert!(read.probes_freely() && read.verifier().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_write_is_told_its_verifier_and_that_it_runs_once() {
    let stack = stack(Stack::builder().hedge(HedgeConfig::default())).await;
    let write = stack.explain("shop.create_order").unwrap();
    let parts = [
        "however it fails, check its outcome with `shop__get_order`",
        "it is not a read",
        "this call probes it only if no safe call comes",
        "after 5 failures in a row for one session, it answers in the server's place for 2 s",
    ];
    has(&write, &parts);
    assert!(write.hedge().is_none() && !write.probes_freely());
    assert_eq!(
        write.verifier().map(ToString::to_string).as_deref(),
        Some("shop__get_order")
    );
    // safe to repeat, and still no two at a time
    let idempotent = stack.explain("shop.set_status").unwrap();
    assert!(idempotent.hedge().is_none() && idempotent.probes_freely());
}

#[tokio::test(start_paused = true)]
async fn what_is_off_is_not_claimed() {
    let mut limits = LimitsConfig::default();
    limits.rate = limits.rate.with_tools(false);
    limits.progress_cap = Cap::Times(1);
    let builder = Stack::builder().loop_guard(None).limits(limits).breaker(
        BreakerConfig::default()
            .with_failures(0)
            .with_failure_rate(50),
    );
    let server = replica("one");
    let stack = builder.server(server).build().await.unwrap();
    let read = stack.explain("shop.get_order").unwrap();
    let text = read.to_string();
    has(&text, &["60 s\n", "opens after 50 % of failures, for 30 s"]);
    for word in ["loop_guard", "hedge", "progress", "for its tool"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    assert!(read.loop_guard().is_none() && read.calls_per_minute().is_none());
}

/// Calls the read twice for each of these orders, each of them so late that it counts.
async fn repeat(stack: &Stack, ids: std::ops::Range<u32>) {
    for id in ids {
        for _ in 0..2 {
            let arguments = json!({"id": id});
            stack.call("shop.get_order", arguments).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_without_a_ttl_is_explained_so_whatever_the_evidence() {
    let mut profile = Profile::standard();
    profile.read_ttl = Duration::ZERO;
    let builder = Stack::builder().freshness(FreshnessMode::Learned);
    let stack = stack(builder.profile(profile)).await;
    repeat(&stack, 0..400).await;
    let expected = "not cached beyond the burst window (500 ms): its TTL is 0 s";
    has(stack.explain("shop.get_order").unwrap(), &[expected]);
    assert_eq!(
        stack.learned_lifetimes().values().next().unwrap().served,
        Duration::ZERO
    );
}
