//! What is reported, and when keys are forgotten.

use std::time::Duration;

use callward_router::affinity::{AffinityConfig, AffinityKey};
use callward_router::{ExclusionReason, RouteEvent};
use tokio::time::advance;

use crate::affinity::bed::{Bed, FOUR, read};
use crate::bed::server;

const TWO: [(&str, u32); 2] = [("a", 50), ("b", 50)];

#[tokio::test(start_paused = true)]
async fn a_key_is_reported_when_it_is_set_and_when_it_ends() {
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
    assert_eq!(back, home, "a forgotten key is ranked again");
}

#[tokio::test(start_paused = true)]
async fn removed_and_drained_are_different_reasons() {
    let bed = Bed::new(&[("a", 50)]);
    bed.read("1");
    bed.set_servers(&[("b", 50)]);
    bed.read("1");
    bed.set_servers(&[("b", 50), ("c", 50)]);
    drop(bed.pool.drain(&server("b")));
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
    assert!(bed.router.candidates(&read("1")).next().is_some());
    advance(Duration::from_secs(4)).await;
    bed.read("1");
    assert_eq!(bed.observed.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_keys_is_bounded_and_each_that_goes_is_reported() {
    let config = AffinityConfig::default().with_max_keys(50);
    let bed = Bed::with(&config, &TWO);
    bed.read_all(200);
    assert_eq!(bed.strategy.held(), 50);
    let events = bed.observed.take();
    let is_expired = |event: &&RouteEvent| matches!(event, RouteEvent::AffinityExpired(_));
    let expired = events.iter().filter(is_expired).count();
    assert_eq!((events.len(), expired), (350, 150));
}

#[tokio::test(start_paused = true)]
async fn no_event_has_a_name_in_it() {
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
        for secret in ["secret-session", "ada"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[test]
fn calls_that_run_at_once_agree_and_move_a_key_once() {
    const SESSIONS: usize = 200;
    let bed = Bed::new(&FOUR);
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
        assert!(router.decide(&read("1")).is_some());
        assert_eq!(observed.take().len(), 2);
    });
    bed.read("1");
    assert!(bed.observed.take().is_empty());
}
