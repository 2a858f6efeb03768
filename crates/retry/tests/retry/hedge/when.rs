//! When a second attempt is sent.

use callward_core::{HedgeStatus, Purpose};
use callward_retry::hedge::HedgeConfig;
use callward_testkit::{call, tool};
use serde_json::json;

use crate::bed::{ms, read, reserve, with};
use crate::hedge::bed::{Bed, Fate, name};

/// The first twenty attempts take 10, 20, ... 200 ms; the next hangs, the others answer at once.
fn slow_at_21(n: usize) -> Fate {
    match n {
        1..=20 => ("ok", n as u64 * 10),
        21 => ("hangs", 0),
        _ => ("ok", 0),
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_is_sent_elsewhere_after_the_95th_percentile() {
    let bed = Bed::new(2, slow_at_21);
    bed.reads(20).await;
    let ended = bed.read().await;
    assert_eq!(ended.result.unwrap().to_text(), "22");
    // the 19th of 20 took 190 ms
    let took = ended.took;
    assert!((ms(190)..=ms(202)).contains(&took), "{took:?}");
    assert_eq!(ended.record.facts().hedge, HedgeStatus::Won);
    // attempts take turns: the 21st is of the first server
    assert_eq!(bed.attempts()[2], 1, "the loser is cancelled");
    let (server, reason) = ended.record.facts().server.unwrap();
    assert_eq!(
        (server, reason),
        (name(1), "answered before a slow attempt")
    );
    let stats = bed.layer.stats();
    assert_eq!((stats.sent, stats.won), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_hedged_before_enough_is_known_nor_too_soon() {
    let other = || call(&tool("other").read_only().build(), json!({}));
    let background = || read().in_background(Purpose::Refresh);
    for (name, known, call, took, attempts) in [
        ("nineteen calls are known", 19, read(), 1_000, 20),
        ("twenty calls are known", 20, read(), 11, 22),
        ("of another tool", 20, other(), 1_000, 21),
        ("in the background", 20, background(), 1_000, 21),
    ] {
        let bed = Bed::new(2, move |n| ("ok", if n == known + 1 { 1_000 } else { 1 }));
        bed.reads(known).await;
        assert_eq!(bed.send(call).await.took, ms(took), "{name}");
        assert_eq!(bed.started(), attempts, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_costs_a_token_of_the_budget_that_retries_are_paid_from() {
    let budget = with(|config| reserve(config, 1));
    let bed = Bed::with(2, budget, HedgeConfig::default(), |n| match n {
        1..=20 => ("ok", 10),
        n if n % 2 == 1 => ("ok", 1000),
        _ => ("ok", 10),
    });
    let tokens = || bed.retry.budgets().first().map(|budget| budget.tokens);
    bed.reads(20).await;
    let hedged = bed.read().await;
    assert_eq!(hedged.record.facts().hedge, HedgeStatus::Won);
    assert_eq!(tokens(), Some(0));

    let refused = bed.read().await;
    assert_eq!(refused.took, ms(1000), "the first attempt is waited for");
    assert_eq!(refused.record.facts().hedge, HedgeStatus::None);
    assert_eq!(bed.layer.stats().no_budget, 1);
    assert_eq!(bed.started(), 23);
}

#[tokio::test(start_paused = true)]
async fn without_another_server_nothing_is_hedged_nor_paid() {
    let bed = Bed::new(1, |n| ("ok", if n == 21 { 1000 } else { 10 }));
    bed.reads(20).await;
    let ended = bed.read().await;
    assert_eq!((ended.took, bed.started()), (ms(1000), 21));
    assert_eq!(ended.record.facts().hedge, HedgeStatus::None);
    assert_eq!(bed.retry.budgets()[0].tokens, 3, "the whole reserve");
    assert_eq!(bed.layer.stats().no_server, 1);
}

#[tokio::test(start_paused = true)]
async fn slow_calls_that_lost_still_count_as_slow() {
    // fifteen in a hundred are very slow, and always lose; the rest take up to a second
    let open = with(|all| (all.budget_reserve, all.budget_capacity) = (10_000, 10_000));
    let mut config = HedgeConfig::default();
    config.percentile = 80;
    let bed = Bed::with(2, open, config, |n| match (n * 7919) % 100 {
        0..15 => ("ok", 60_000),
        rest => ("ok", rest as u64 * 10),
    });
    let reads = 4000;
    bed.reads(reads).await;
    let stats = bed.layer.stats();
    assert!(stats.won > 400, "{stats:?}");
    // if they were not counted, a fifth of the quick ones would be hedged too
    let share = stats.sent as f64 / reads as f64;
    assert!(share < 0.22, "{share}: {stats:?}");
}
