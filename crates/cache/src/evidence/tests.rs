//! What the evidence of a tool says, from the outside.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{ReplicaSetId, ToolName};
use tokio::time::Instant;

use super::bucket::EDGES;
use super::registry::MAX_SUBJECTS;
use super::{Evidences, Subject, ToolEvidence};

mod kept;
mod simulation;

const DAY: Duration = Duration::from_secs(86_400);

fn subject(tool: &str, definition: u128, partition: u128) -> Subject {
    Subject {
        set: ReplicaSetId::new("files").unwrap(),
        tool: ToolName::new(tool).unwrap(),
        definition,
        partition,
    }
}

fn tool(odds: f64) -> Arc<ToolEvidence> {
    Evidences::new(odds).of(&subject("read", 1, 2))
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// Observes this many keys as equal, once in each bucket with one of these edges. Each observation
/// is far enough from the last one to count. Returns the time after the last.
fn observe_equal(tool: &ToolEvidence, keys: u128, edges: &[u32], mut now: Instant) -> Instant {
    let apart = seconds(edges.iter().copied().max().unwrap_or(0));
    for key in 0..keys {
        for edge in edges {
            tool.observe(key, 0, seconds(*edge), true, now);
        }
        now += apart;
    }
    now
}

#[test]
fn ten_keys_make_evidence_for_their_tool_and_nine_never_do() {
    let mut at = Instant::now();
    let (few, many) = (tool(0.01), tool(0.01));
    for session in 0..60 {
        at += Duration::from_secs(301);
        for key in 0..10 {
            at += seconds(1);
            if key < 9 {
                few.observe(key, session, seconds(1), true, at);
            }
            many.observe(key, session, seconds(1), true, at);
        }
    }
    assert_eq!(few.allowed(), Duration::ZERO);
    assert_eq!(many.allowed(), seconds(1));
    let weight = few.status().buckets[0].equal_weight;
    assert!((290.0..=9.0 * 33.2).contains(&weight), "{weight}");
}

#[test]
fn a_lifetime_takes_each_bucket_up_to_it() {
    let tool = tool(0.01);
    let now = observe_equal(&tool, 700, &[1, 3, 10, 100], Instant::now());
    tool.observe(1, 1, seconds(301), true, now);
    assert_eq!(tool.status().repeats, 2_800);
    assert_eq!(tool.allowed(), seconds(10));
    let now = observe_equal(&tool, 400, &[30], now);
    assert_eq!(tool.allowed(), seconds(100));
    assert_eq!(tool.allowed_for(7, now), seconds(100));
    assert_eq!(tool.allowed_for(7_000, now), seconds(100));
}

#[test]
fn the_only_key_of_a_tool_passes_by_its_own_evidence() {
    let (tool, mut now) = (tool(0.01), Instant::now());
    for session in 0..400 {
        now += Duration::from_secs(60);
        tool.observe(1, session, seconds(1), true, now);
        tool.observe(1, session, seconds(3), true, now);
    }
    assert_eq!(tool.allowed(), Duration::ZERO);
    assert_eq!(tool.allowed_for(1, now), seconds(3));
    assert_eq!(tool.allowed_for(2, now), Duration::ZERO);
    let verified = |draw: f64| {
        (0..150)
            .filter(|_| tool.verifies(1, seconds(1), draw, now))
            .count()
    };
    assert_eq!(verified(0.999), 100);
    assert!(tool.verifies(1, seconds(4), 0.99, now));
    tool.observe(1, 1, seconds(1), false, now);
    assert!(tool.stands_alone(1));
    assert_eq!(tool.allowed_for(1, now), Duration::ZERO);
}

#[test]
fn a_flood_of_sessions_and_keys_is_as_much_evidence_as_its_time() {
    let (tool, now) = (tool(0.01), Instant::now());
    for call in 0..37_200_u32 {
        let later = now + Duration::from_micros(800) * call;
        tool.observe((call % 2_000).into(), call.into(), seconds(1), true, later);
        tool.observe(call.into(), call.into(), seconds(3), true, later);
    }
    let buckets = tool.status().buckets;
    assert!(buckets[0].equal_weight <= 30.0 && buckets[1].equal_weight <= 10.0);
    assert_eq!(tool.allowed(), Duration::ZERO);
}

#[test]
fn sessions_that_read_a_key_together_are_one_observation_of_it() {
    let (tool, mut now) = (tool(0.01), Instant::now());
    for _ in 0..45 {
        now += seconds(301);
        for session in 0..8 {
            tool.observe(1, session, seconds(1), true, now);
        }
    }
    assert_eq!(tool.status().repeats, 360);
    assert_eq!(tool.allowed_for(1, now), Duration::ZERO);
}

#[test]
fn a_key_that_differed_uses_its_own_evidence_only() {
    let tool = tool(0.01);
    let now = observe_equal(&tool, 2_000, &EDGES[..5], Instant::now());
    assert_eq!(tool.allowed(), seconds(100));
    tool.observe(7, 0, seconds(10), false, now);
    // the bucket is removed for all, and passes again at the next equal observation
    assert_eq!(tool.allowed(), seconds(3));
    tool.observe(8, 1, seconds(10), true, now);
    assert_eq!(tool.allowed(), seconds(100));
    assert!(tool.stands_alone(7) && !tool.stands_alone(8));
    assert_eq!(tool.allowed_for(7, now), Duration::ZERO);
    assert!(tool.verifies(7, seconds(1), 0.999, now));
    // what it does from now on is not held against the others
    let before = tool.status().buckets[2].different_weight;
    tool.observe(7, 1, seconds(10), false, now);
    assert_eq!(tool.status().buckets[2].different_weight, before);
    assert_eq!(tool.allowed(), seconds(100));
    // its equal observations help it, not them
    let equal = tool.status().buckets[0].equal_weight;
    tool.observe(7, 2, seconds(1), true, now);
    assert_eq!(tool.status().buckets[0].equal_weight, equal);
}

#[test]
fn an_equal_observation_that_turns_different_is_taken_back() {
    let (tool, now) = (tool(0.01), Instant::now());
    for key in 0..10 {
        let later = now + seconds(key);
        tool.observe(key.into(), 1, seconds(1), true, later);
    }
    tool.observe(3, 1, seconds(1), false, now);
    let bucket = tool.status().buckets[0];
    assert_eq!((bucket.equal_weight, bucket.different_weight), (9.0, 1.0));
    assert_eq!((bucket.repeats, bucket.different), (11, 1));
}

#[test]
fn verification_starts_anew_after_a_difference() {
    let tool = tool(0.01);
    let now = observe_equal(&tool, 2_000, &[1], Instant::now());
    let verified = || {
        let hits = 0..5_000_u32;
        hits.filter(|hit| tool.verifies(9, seconds(1), f64::from(*hit % 100) / 100.0, now))
            .count()
    };
    let first = verified();
    // all of 100, then a share that falls to 5 %: 100 (1 + ln 20) until hit 2,000, and 150 of the
    // rest
    assert!((480..620).contains(&first), "{first}");
    let later = verified();
    assert_eq!(later, 250);
    tool.observe(1, 5, seconds(1), false, now);
    assert_eq!(verified(), 5_000);
    tool.observe(2, 5, seconds(1), true, now);
    assert_eq!(tool.allowed(), seconds(1));
    assert_eq!(verified(), first);
}

#[test]
fn evidence_ages_and_the_hit_path_notices() {
    let tool = tool(0.01);
    let now = observe_equal(&tool, 400, &[1, 3], Instant::now());
    assert!(!(0..=100).all(|_| tool.verifies(1, seconds(1), 0.999, now)));
    let tomorrow = now + DAY;
    assert_eq!(tool.allowed(), seconds(3));
    assert!(tool.verifies(1, seconds(1), 0.99, tomorrow));
    assert_eq!(tool.allowed(), Duration::ZERO);
    assert_eq!(tool.allowed_for(1, tomorrow), Duration::ZERO);
    let weight = tool.status().buckets[0].equal_weight;
    assert!((weight - 199.0).abs() < 1.0, "{weight}");
}

#[test]
fn a_clock_that_stands_or_goes_back_does_no_harm() {
    let (tool, now) = (tool(0.01), Instant::now() + DAY);
    observe_equal(&tool, 400, &[1], now);
    tool.observe(1, 1, seconds(1), true, now - DAY);
    assert!(!(0..200).all(|_| tool.verifies(1, seconds(1), 0.99, now - DAY)));
    assert_eq!(tool.allowed(), seconds(1));
}

#[test]
fn another_definition_drops_the_evidence_about_the_old_one() {
    let (evidences, now) = (Evidences::new(0.01), Instant::now());
    for partition in 0..3 {
        let tool = evidences.of(&subject("read", 1, partition));
        observe_equal(&tool, 400, &[1], now);
    }
    assert_eq!(evidences.of(&subject("read", 1, 2)).allowed(), seconds(1));
    for definition in [2, 1] {
        let tool = evidences.of(&subject("read", definition, 2));
        assert_eq!(tool.allowed(), Duration::ZERO);
    }
    assert_eq!(evidences.all().len(), 1);
}

#[test]
fn the_least_recently_used_subjects_are_dropped() {
    let (evidences, now) = (Evidences::new(0.01), Instant::now());
    for partition in 0..MAX_SUBJECTS as u128 {
        evidences
            .of(&subject("read", 1, partition))
            .observe(1, 1, seconds(1), true, now);
    }
    evidences.of(&subject("read", 1, 0));
    evidences.of(&subject("other", 1, 0));
    let all = evidences.all();
    assert_eq!(all.len(), MAX_SUBJECTS);
    let known = |subject: &Subject| all.iter().any(|(known, _)| known == subject);
    assert!(known(&subject("read", 1, 0)) && !known(&subject("read", 1, 1)));
    assert!(known(&subject("other", 1, 0)));
}

#[test]
fn the_status_shows_repeats_and_needs() {
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 400, &[1, 3], now);
    tool.observe(5, 0, seconds(30), false, now);
    let status = serde_json::to_value(tool.status()).unwrap();
    assert_eq!(status["allowed_s"], 3.0);
    assert_eq!(status["repeats"], 801);
    assert_eq!(status["different"], 1);
    assert_eq!(status["needed"], 332.0);
    assert_eq!(status["keys_alone"], 1);
    assert_eq!(status["buckets"][3]["up_to_s"], 30);
    assert_eq!(status["buckets"][3]["different"], 1);
    assert_eq!(status["buckets"][1]["passes"], true);
}
