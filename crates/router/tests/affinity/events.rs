//! What is reported, and when keys are forgotten.

use std::time::Duration;

use callward_router::affinity::{AffinityConfig, AffinityKey};
use callward_router::{ExclusionReason, Router, RouterConfig, StrategyName};
use tokio::time::advance;

use crate::bed::{Bed, Event};

const TWO: [(&str, u32); 2] = [("a", 50), ("b", 50)];

#[tokio::test(start_paused = true)]
async fn a_key_is_told_of_when_it_is_set_and_when_it_ends() {
    let bed = Bed::new(&TWO);
    let home = bed.read("secret-session");
    let other = if home == "a" { "b" } else { "a" };
    bed.read("secret-session");
    let (words, digests) = bed.observed.words();
    assert_eq!(words, [format!("session to {home}")]);

    bed.spoil(&home, ExclusionReason::Unreachable);
    bed.read("secret-session");
    bed.read("secret-session");
    let (words, moved) = bed.observed.words();
    assert_eq!(
        words,
        [
            format!("session from {home}: unreachable"),
            format!("session to {other}")
        ]
    );
    assert_eq!(moved, [digests[0]; 2]);

    bed.heal(&home);
    advance(Duration::from_secs(30 * 60)).await;
    let back = bed.read("secret-session");
    let (words, _) = bed.observed.words();
    assert_eq!(
        words,
        [
            format!("session from {other}: ttl"),
            format!("session to {back}")
        ]
    );
    assert_eq!(back, home, "forgotten, it is ranked anew");
}

#[tokio::test(start_paused = true)]
async fn removed_and_drained_are_told_apart() {
    let bed = Bed::new(&[("a", 50)]);
    bed.read("1");
    bed.set_servers(&[("b", 50)]);
    bed.read("1");
    bed.set_servers(&[("b", 50), ("c", 50)]);
    drop(bed.pool.drain(&crate::bed::server("b")));
    bed.read("1");
    assert_eq!(
        bed.observed.words().0,
        [
            "session to a",
            "session from a: removed",
            "session to b",
            "session from b: draining",
            "session to c"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_call_begins_the_ttl_anew() {
    let config = AffinityConfig::default().with_ttl(Duration::from_secs(10));
    let bed = Bed::with(&config, &TWO);
    let home = bed.read("1");
    bed.observed.take();
    for _ in 0..5 {
        advance(Duration::from_millis(9_999)).await;
        assert_eq!(bed.read("1"), home);
    }
    assert!(bed.observed.take().is_empty());
    // a lookup is not a use
    advance(Duration::from_secs(6)).await;
    assert!(
        bed.router
            .candidates(&crate::bed::read("1"))
            .next()
            .is_some()
    );
    advance(Duration::from_secs(4)).await;
    bed.read("1");
    assert_eq!(bed.observed.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_keys_than_may_be_and_those_that_go_are_told_of() {
    let config = AffinityConfig::default().with_max_keys(50);
    let bed = Bed::with(&config, &TWO);
    bed.read_all(200);
    assert_eq!(bed.strategy.held(), 50);
    let events = bed.observed.take();
    let expired = events
        .iter()
        .filter(|event| matches!(event, Event::Expired(_)));
    assert_eq!((events.len(), expired.count()), (350, 150));
}

#[tokio::test(start_paused = true)]
async fn no_name_is_told() {
    for by in [
        AffinityKey::Session,
        AffinityKey::User,
        "/id".parse().unwrap(),
    ] {
        let bed = Bed::with(&AffinityConfig::default().with_by(by), &TWO);
        bed.read("secret-session");
        let events = bed.observed.take();
        assert_eq!(events.len(), 1);
        let text = format!("{events:?} {:?}", bed.strategy);
        assert!(
            !text.contains("secret-session") && !text.contains("ada"),
            "{text}"
        );
    }
}

#[test]
fn calls_that_run_at_once_agree_and_move_a_key_once() {
    const SESSIONS: usize = 200;
    let bed = Bed::new(&[("a", 50), ("b", 50), ("c", 50), ("d", 50)]);
    let read_at_once = || {
        let start = std::sync::Barrier::new(4);
        let read = || {
            start.wait();
            bed.read_all(SESSIONS)
        };
        let homes: [Vec<String>; 4] = std::thread::scope(|scope| {
            let threads: [_; 4] = std::array::from_fn(|_| scope.spawn(read));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(homes.iter().all(|others| *others == homes[0]));
        homes[0].clone()
    };
    let homes = read_at_once();
    assert_eq!(bed.observed.take().len(), SESSIONS);
    bed.spoil("b", ExclusionReason::Unreachable);
    read_at_once();
    let moved = homes.iter().filter(|home| *home == "b").count();
    assert_eq!(bed.observed.take().len(), 2 * moved);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_too_late_to_move_a_key_leaves_it() {
    let bed = Bed::new(&[("a", 50), ("b", 50), ("c", 50)]);
    let home = bed.read("1");
    bed.spoil(&home, ExclusionReason::Unreachable);
    bed.observed.take();
    // both have found the key at the same home before either moves it
    let (router, observed) = (bed.router.clone(), bed.observed.clone());
    bed.interrupt(move || {
        assert!(router.decide(&crate::bed::read("1")).is_some());
        assert_eq!(observed.take().len(), 2);
    });
    bed.read("1");
    assert!(bed.observed.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_router_tells_where_keys_go_among_its_other_events() {
    let bed = Bed::new(&TWO);
    let config = RouterConfig::default().with_strategy(StrategyName::Affinity);
    let router = Router::with_config(bed.pool.clone(), &config).unwrap();
    let mut events = router.events();
    let home = router.decide(&crate::bed::read("1")).unwrap();
    bed.spoil(home.as_str(), ExclusionReason::Unreachable);
    router.decide(&crate::bed::read("1")).unwrap();
    let mut observed = Vec::new();
    while observed.len() < 3 {
        let event = serde_json::to_value(events.next().await.unwrap()).unwrap();
        if event["by"] == "session" {
            observed.push(event);
        }
    }
    let types: Vec<&str> = observed
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(types, ["affinitySet", "affinityExpired", "affinitySet"]);
    assert_eq!(observed[0]["ttl_ms"], 30 * 60 * 1000);
    assert_eq!(observed[0]["server"], home.as_str());
    assert_eq!(observed[1]["server"], home.as_str());
    assert_eq!(observed[1]["reason"], "unreachable");
    assert_eq!(observed[1]["key"], observed[0]["key"]);
    assert_ne!(observed[2]["server"], home.as_str());
}
