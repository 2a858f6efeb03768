//! When a second attempt is sent, and what is never sent twice at a time.

use callward_core::{Annotations, Effect, HedgeStatus, Profile, RetryRule, ToolCall};
use callward_retry::RetryLayer;
use callward_retry::hedge::{HedgeConfig, HedgeLayer};
use callward_testkit::{MockClient, MockService, call, contract, tool};
use proptest::prelude::*;
use serde_json::json;
use tower::util::MapRequest;
use tower::{Layer, ServiceExt};

use crate::bed::{ms, read, reserve, runtime, with};
use crate::hedge::bed::Bed;

#[tokio::test(start_paused = true)]
async fn a_call_is_not_hedged_before_enough_is_known_nor_too_soon() {
    let other = || call(&tool("other").read_only().build(), json!({}));
    let background = || read().in_background();
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
async fn only_the_first_attempt_asks_the_client() {
    for (first, hedge, result, took, attempts, questions) in [
        (("asks", 5), ("ok", 0), "21", 1_005, 21, 1),
        (("asks", 100), ("ok", 50), "22", 60, 22, 0),
        (("asks", 100), ("ok", 200), "22", 210, 22, 1),
        (("asks", 100), ("asks", 200), "21", 1_100, 22, 1),
        (("asks", 200), ("asks", 100), "21", 1_200, 22, 1),
        (("asks", 100), ("input", 200), "21", 1_100, 22, 1),
        (("ok", 500), ("asks", 0), "21", 500, 22, 0),
        (
            ("lost", 500),
            ("asks", 100),
            "attempt 21 failed",
            500,
            22,
            0,
        ),
        (("lost", 50), ("asks", 100), "attempt 21 failed", 110, 22, 0),
    ] {
        let bed = Bed::new(2, move |n| match n {
            21 => first,
            22 => hedge,
            _ => ("ok", 10),
        });
        bed.reads(20).await;
        let (client, call) = MockClient::make(read());
        let ended = bed.send(call).await;
        let text = match ended.result {
            Ok(output) => output.to_text(),
            Err(error) => error.message.to_string(),
        };
        let found = (text.as_str(), ended.took, bed.started());
        assert_eq!(found, (result, ms(took), attempts), "{first:?} {hedge:?}");
        assert_eq!(client.questions().len(), questions, "{first:?} {hedge:?}");
        assert_eq!(bed.attempts()[1], 0, "an attempt goes on");
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

#[tokio::test(start_paused = true)]
async fn the_layer_keeps_the_contract_whether_it_hedges_a_call_or_not() {
    let on = RetryLayer::default().hedge(HedgeConfig::default()).unwrap();
    contract::check(|inner| on.layer(inner)).await;
    contract::check(|inner| HedgeLayer::off().layer(inner)).await;
    assert_eq!(HedgeLayer::off().stats(), Default::default());
    // the probes' calls as reads, of a tool that was measured: a second attempt stands by
    let read = tool("probe").read_only().build();
    for _ in 0..20 {
        let service = on.layer(MockService::counting());
        service.oneshot(call(&read, json!({}))).await.unwrap();
    }
    contract::check(|inner| {
        let read = read.clone();
        let as_read =
            move |probe: ToolCall| ToolCall::new(read.clone(), probe.arguments().to_vec());
        MapRequest::new(on.layer(inner), as_read)
    })
    .await;
}

fn hints() -> impl Strategy<Value = Annotations> {
    let hint = || prop::option::of(any::<bool>());
    (hint(), hint(), hint()).prop_map(|(read_only, idempotent, destructive)| {
        let mut hints = Annotations::default();
        hints.read_only_hint = read_only;
        hints.idempotent_hint = idempotent;
        hints.destructive_hint = destructive;
        hints
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_may_change_anything_is_ever_at_two_servers_at_a_time(
        hints in hints(),
        profile in prop::sample::select(vec![
            Profile::standard(),
            Profile::strict(),
            Profile::neurolink(),
        ]),
        slow in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let tool = tool("any").hint(|all| *all = hints).profile(profile).build();
        let asked = call(&tool, json!({}));
        let plan = asked.plan();
        let reads = plan.effect == Effect::ReadOnly && plan.retry == RetryRule::Safe;
        let any_slow = slow.contains(&true);
        let budget = with(|config| config.budget_reserve = 100);
        let bed = Bed::with(2, budget, HedgeConfig::default(), {
            let slow = slow.clone();
            move |n| {
                // the plan of a write is only ever one attempt a call, so these are calls
                let slow = n.checked_sub(21).and_then(|n| slow.get(n));
                ("ok", if slow == Some(&true) { 60_000 } else { 10 })
            }
        });
        runtime().block_on(async {
            for _ in 0..20 + slow.len() {
                bed.send(asked.clone()).await.result.unwrap();
            }
        });
        let calls = 20 + slow.len();
        if reads {
            prop_assert_eq!(bed.started() > calls, any_slow);
        } else {
            prop_assert_eq!(bed.started(), calls);
        }
    }
}
