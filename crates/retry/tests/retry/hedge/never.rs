//! What is never sent twice at a time.

use callward_core::{Annotations, Effect, Profile, RetryRule, ToolCall};
use callward_retry::RetryLayer;
use callward_retry::hedge::{HedgeConfig, HedgeLayer};
use callward_testkit::{MockService, call, contract, tool};
use proptest::prelude::*;
use serde_json::json;
use tower::util::MapRequest;
use tower::{Layer, ServiceExt};

use crate::bed::{runtime, with};
use crate::hedge::bed::Bed;

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
