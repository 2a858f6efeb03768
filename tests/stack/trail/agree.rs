//! What is explained is what happens: of random tools, profiles and failures.

use callward::cache::CacheConfig;
use callward::core::trail::{Stage, Verdict};
use callward::{Delivery, ErrorKind, Profile, Server, Stack, Trail};
use callward_testkit::MockServer;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::{failing, in_set, paused, tool};
use crate::trail::bed::{prepare, run};

/// A tool as its server lists it.
fn listed() -> impl Strategy<Value = Value> {
    let hint = || prop_oneof![Just(None), any::<bool>().prop_map(Some)];
    let name = prop_oneof![Just("get_thing"), Just("set_thing"), Just("delete_thing")];
    // a tool that claims to read and to destroy is not listed
    let hints = (name, hint(), hint(), hint(), hint()).prop_filter("a contradiction", |listed| {
        (listed.1, listed.2) != (Some(true), Some(true))
    });
    hints.prop_map(|(name, reads, destroys, repeats, asks)| {
        let mut hints = serde_json::Map::new();
        for (key, hint) in [
            ("readOnlyHint", reads),
            ("destructiveHint", destroys),
            ("idempotentHint", repeats),
            ("requiresConfirmation", asks),
        ] {
            hints.extend(hint.map(|hint| (key.to_owned(), json!(hint))));
        }
        tool(name, Value::Object(hints))
    })
}

fn failure() -> impl Strategy<Value = (usize, ErrorKind, Delivery)> {
    let how = prop_oneof![
        Just((ErrorKind::ConnectFailed, Delivery::NotSent)),
        Just((ErrorKind::ConnectionLost, Delivery::Unknown)),
        Just((ErrorKind::ServerFault, Delivery::Answered)),
        Just((ErrorKind::InvalidCall, Delivery::Answered)),
    ];
    (0_usize..3, how).prop_map(|(times, (kind, delivery))| (times, kind, delivery))
}

/// Returns how what happened differs from what was expected.
fn contradiction(expected: &Trail, observed: &Trail) -> Option<String> {
    let same = |stage: Stage| {
        let verdict = |trail: &Trail| trail.first(stage).map(|reported| reported.verdict);
        let (before, after) = (verdict(expected), verdict(observed));
        (before != after).then(|| format!("{stage}: {before:?}, but {after:?}"))
    };
    let rules = [
        expected.annotations == observed.annotations,
        expected.effect == observed.effect,
        expected.plan == observed.plan,
        expected.first(Stage::Plan) == observed.first(Stage::Plan),
    ];
    let hit = observed
        .first(Stage::Cache)
        .map(|reported| reported.verdict)
        == Some(Verdict::Hit);
    let repeats = observed
        .of(Stage::Retry)
        .filter(|reported| reported.verdict == Verdict::Retry)
        .count();
    let may = expected
        .first(Stage::Retry)
        .map(|reported| reported.verdict);
    let forbidden = match may {
        Some(Verdict::Safe) => repeats > 2,
        Some(Verdict::OnlyUnsent) => observed.of(Stage::Retry).any(|reported| {
            reported.verdict == Verdict::Retry && !reported.reason.contains("not_sent")
        }),
        _ => repeats > 0,
    };
    // a hit asks no router; otherwise the first server is the one that was foretold
    let route = |trail: &Trail| {
        let first = trail.first(Stage::Route)?;
        Some((first.verdict, first.server.clone(), first.reason.clone()))
    };
    let elsewhere = !hit && route(expected) != route(observed);
    rules
        .contains(&false)
        .then(|| "the plan".to_owned())
        .or_else(|| same(Stage::Confirm))
        .or_else(|| same(Stage::Cache))
        .or_else(|| forbidden.then(|| format!("{repeats} repeats, but {may:?}")))
        .or_else(|| elsewhere.then(|| format!("{:?}, but {:?}", route(expected), route(observed))))
}

/// Four calls of one tool, each explained before it is made.
async fn explained_and_made(
    tool: &Value,
    profile: Profile,
    caches: bool,
    weights: [u32; 2],
    (times, kind, delivery): (usize, ErrorKind, Delivery),
) -> Result<(), String> {
    let mut cache = CacheConfig::default();
    cache.enabled = caches;
    let servers = ["a", "b"]
        .map(|id| MockServer::new(id, vec![tool.clone()], failing(times, kind, delivery)));
    let heavy = |id: &str, server: Server| server.weight(weights[usize::from(id == "b")]);
    let builder = Stack::builder().profile(profile).cache(cache);
    let stack = in_set(builder, &servers, heavy).await;
    let name = tool["name"].as_str().unwrap();
    for number in 1..=4 {
        let (call, _) = prepare(&stack, name);
        let expected = stack.explain_prepared(&call).unwrap().trail();
        let observed = run(&stack, name).await;
        if let Some(what) = contradiction(&expected, &observed) {
            let (expected, observed) = (expected.to_line(), observed.to_line());
            return Err(format!("call {number}: {what}\n{expected}\n{observed}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_explained_is_what_then_happens(
        tool in listed(),
        profile in prop::sample::select(Profile::NAMES),
        caches in any::<bool>(),
        weights in prop::sample::select(&[[100, 100], [60, 10], [10, 10]][..]),
        failure in failure(),
    ) {
        let profile = Profile::by_name(profile).unwrap();
        let done = paused().block_on(explained_and_made(&tool, profile, caches, weights, failure));
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
    }
}
