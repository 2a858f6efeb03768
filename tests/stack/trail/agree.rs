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
    let name = prop::sample::select(&["get_thing", "set_thing", "delete_thing"]);
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

const FAILURES: [(ErrorKind, Delivery); 4] = [
    (ErrorKind::ConnectFailed, Delivery::NotSent),
    (ErrorKind::ConnectionLost, Delivery::Unknown),
    (ErrorKind::ServerFault, Delivery::Answered),
    (ErrorKind::InvalidCall, Delivery::Answered),
];

/// Returns how what happened differs from what was expected.
fn contradiction(expected: &Trail, observed: &Trail) -> Option<String> {
    let verdict = |trail: &Trail, stage| trail.first(stage).map(|one| one.verdict);
    let differs = |stage: Stage| {
        let (before, after) = (verdict(expected, stage), verdict(observed, stage));
        (before != after).then(|| format!("{stage}: {before:?}, but {after:?}"))
    };
    let is_planned = expected.annotations == observed.annotations
        && expected.effect == observed.effect
        && expected.plan == observed.plan
        && expected.first(Stage::Plan) == observed.first(Stage::Plan);
    let repeats = observed
        .of(Stage::Retry)
        .filter(|one| one.verdict == Verdict::Retry);
    let repeats: Vec<_> = repeats.collect();
    let may = verdict(expected, Stage::Retry);
    let is_allowed = match may {
        Some(Verdict::Safe) => repeats.len() <= 2,
        Some(Verdict::OnlyUnsent) => repeats.iter().all(|one| one.reason.contains("not_sent")),
        _ => repeats.is_empty(),
    };
    // a hit asks no router; otherwise the first server is the one that was foretold
    let route = |trail: &Trail| {
        let first = trail.first(Stage::Route)?;
        Some((first.verdict, first.server.clone(), first.reason.clone()))
    };
    let (before, after) = (route(expected), route(observed));
    let elsewhere = verdict(observed, Stage::Cache) != Some(Verdict::Hit) && before != after;
    (!is_planned)
        .then(|| "the plan".to_owned())
        .or_else(|| differs(Stage::Confirm))
        .or_else(|| differs(Stage::Cache))
        .or_else(|| (!is_allowed).then(|| format!("{repeats:?}, but {may:?}")))
        .or_else(|| elsewhere.then(|| format!("{before:?}, but {after:?}")))
}

/// Four calls of one tool, each explained before it is made.
async fn explained_and_made(
    tool: &Value,
    profile: Profile,
    caches: bool,
    weights: [u32; 2],
    (times, (kind, delivery)): (usize, (ErrorKind, Delivery)),
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
        failure in (0_usize..3, prop::sample::select(&FAILURES)),
    ) {
        let profile = Profile::by_name(profile).unwrap();
        let done = paused().block_on(explained_and_made(&tool, profile, caches, weights, failure));
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
    }
}
