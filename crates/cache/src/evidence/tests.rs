//! What the evidence of a tool says, from the outside.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use tollgate_core::{ReplicaSetId, ToolName};

use super::bucket::EDGES;
use super::format::{Snapshot, end_of};
use super::registry::MOST_SUBJECTS;
use super::{Evidences, Subject, ToolEvidence};

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

/// Every session observes each key as equal, once in each bucket up to this edge.
fn observe_equal(tool: &ToolEvidence, keys: u128, sessions: u64, up_to: u32, now: Instant) {
    for session in 0..sessions {
        for key in 0..keys {
            for edge in EDGES.into_iter().filter(|edge| *edge <= up_to) {
                // sessions with a number of their own: a visit each, however many are remembered
                let later = now + Duration::from_secs(301 * session);
                tool.observe(key, session, seconds(edge), true, later);
            }
        }
    }
}

#[test]
fn without_evidence_nothing_is_allowed() {
    let (tool, now) = (tool(0.01), Instant::now());
    assert_eq!(tool.allowed(), Duration::ZERO);
    assert_eq!(tool.allowed_for(1, now), Duration::ZERO);
    assert!(!tool.stands_alone(1));
    assert!(tool.verifies(1, Duration::ZERO, 0.999, now));
}

#[test]
fn ten_keys_make_evidence_for_their_tool_and_nine_never_do() {
    let mut at = Instant::now();
    let (few, many) = (tool(0.01), tool(0.01));
    for session in 0..60 {
        at += Duration::from_secs(301);
        for key in 0..10 {
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
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 400, 1, 10, now);
    assert_eq!(tool.allowed(), seconds(10));
    for key in 0..400 {
        tool.observe(key, 0, seconds(100), true, now);
        tool.observe(key, 0, seconds(301), true, now);
    }
    assert_eq!(tool.allowed(), seconds(10));
    for key in 0..400 {
        tool.observe(key, 0, seconds(30), true, now);
    }
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
    assert!(!tool.verifies(1, seconds(2), 0.99, now) || tool.verifies(1, seconds(5), 0.99, now));
    let verified = |draw: f64| {
        (0..150)
            .filter(|_| tool.verifies(1, seconds(1), draw, now))
            .count()
    };
    assert_eq!(verified(0.99), 100);
    assert!(tool.verifies(1, seconds(4), 0.99, now));
    tool.observe(1, 1, seconds(1), false, now);
    assert!(tool.stands_alone(1));
    assert_eq!(tool.allowed_for(1, now), Duration::ZERO);
}

#[test]
fn one_session_that_repeats_one_call_is_one_observation() {
    let (tool, mut now) = (tool(0.01), Instant::now());
    for _ in 0..2_000 {
        now += Duration::from_secs(2);
        tool.observe(1, 1, seconds(2), true, now);
    }
    let status = tool.status();
    assert_eq!(status.repeats, 2_000);
    assert!(status.buckets[1].equal_weight <= 1.0);
    assert_eq!(tool.allowed_for(1, now), Duration::ZERO);
}

#[test]
fn a_key_that_differed_uses_its_own_evidence_only() {
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 2_000, 1, 300, now);
    assert_eq!(tool.allowed(), seconds(300));
    tool.observe(7, 0, seconds(10), false, now);
    // the bucket is removed for all, and passes again at the next equal observation
    assert_eq!(tool.allowed(), seconds(3));
    tool.observe(8, 1, seconds(10), true, now);
    assert_eq!(tool.allowed(), seconds(300));
    assert!(tool.stands_alone(7) && !tool.stands_alone(8));
    assert_eq!(tool.allowed_for(7, now), Duration::ZERO);
    assert!(tool.verifies(7, seconds(1), 0.999, now));
    // what it does from now on is not held against the others
    let before = tool.status().buckets[2].different_weight;
    tool.observe(7, 1, seconds(10), false, now);
    assert_eq!(tool.status().buckets[2].different_weight, before);
    assert_eq!(tool.allowed(), seconds(300));
    // its equal observations help it, not them
    let equal = tool.status().buckets[0].equal_weight;
    tool.observe(7, 2, seconds(1), true, now);
    assert_eq!(tool.status().buckets[0].equal_weight, equal);
}

#[test]
fn a_turned_unit_is_taken_back() {
    let (tool, now) = (tool(0.01), Instant::now());
    for key in 0..10 {
        tool.observe(key, 1, seconds(1), true, now);
    }
    tool.observe(3, 1, seconds(1), false, now);
    let bucket = tool.status().buckets[0];
    assert_eq!((bucket.equal_weight, bucket.different_weight), (9.0, 1.0));
    assert_eq!((bucket.repeats, bucket.different), (11, 1));
}

#[test]
fn verification_starts_anew_after_a_difference() {
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 2_000, 1, 1, now);
    let verified = || {
        let hits = 0..5_000_u32;
        hits.filter(|hit| tool.verifies(9, seconds(1), f64::from(*hit % 100) / 100.0, now))
            .count()
    };
    let first = verified();
    // all of 100, then a share that falls to 5 %: 100 (1 + ln 20) until hit 2,000, and 150 of the rest
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
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 400, 1, 3, now);
    assert!(!(0..=100).all(|_| tool.verifies(1, seconds(1), 0.99, now)));
    let tomorrow = now + DAY;
    assert_eq!(tool.allowed(), seconds(3));
    assert!(tool.verifies(1, seconds(1), 0.99, tomorrow));
    assert_eq!(tool.allowed(), Duration::ZERO);
    assert_eq!(tool.allowed_for(1, tomorrow), Duration::ZERO);
    let weight = tool.status().buckets[0].equal_weight;
    assert!((weight - 200.0).abs() < 1e-6, "{weight}");
}

#[test]
fn a_clock_that_stands_or_goes_back_does_no_harm() {
    let (tool, now) = (tool(0.01), Instant::now() + DAY);
    observe_equal(&tool, 400, 1, 1, now);
    tool.observe(1, 1, seconds(1), true, now - DAY);
    assert!(!(0..200).all(|_| tool.verifies(1, seconds(1), 0.99, now - DAY)));
    assert_eq!(tool.allowed(), seconds(1));
}

#[test]
fn another_definition_drops_the_evidence_about_the_old_one() {
    let (evidences, now) = (Evidences::new(0.01), Instant::now());
    for partition in 0..3 {
        let tool = evidences.of(&subject("read", 1, partition));
        observe_equal(&tool, 400, 1, 1, now);
    }
    assert_eq!(evidences.of(&subject("read", 1, 2)).allowed(), seconds(1));
    assert_eq!(
        evidences.of(&subject("read", 2, 2)).allowed(),
        Duration::ZERO
    );
    assert_eq!(
        evidences.of(&subject("read", 1, 2)).allowed(),
        Duration::ZERO
    );
    assert_eq!(evidences.all().len(), 1);
}

#[test]
fn the_least_recently_used_subjects_are_dropped() {
    let (evidences, now) = (Evidences::new(0.01), Instant::now());
    for partition in 0..MOST_SUBJECTS as u128 {
        evidences
            .of(&subject("read", 1, partition))
            .observe(1, 1, seconds(1), true, now);
    }
    evidences.of(&subject("read", 1, 0));
    evidences.of(&subject("other", 1, 0));
    let all = evidences.all();
    assert_eq!(all.len(), MOST_SUBJECTS);
    let known = |subject: &Subject| all.iter().any(|(known, _)| known == subject);
    assert!(known(&subject("read", 1, 0)) && !known(&subject("read", 1, 1)));
    assert!(known(&subject("other", 1, 0)));
}

#[test]
fn the_status_tells_repeats_and_needs() {
    let (tool, now) = (tool(0.01), Instant::now());
    observe_equal(&tool, 400, 1, 3, now);
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

/// What can be seen of all evidence.
fn seen(evidences: &Evidences) -> Vec<(Subject, String)> {
    let all = evidences.all().into_iter();
    all.map(|(subject, tool)| {
        let status = tool.status();
        let weights = status.buckets.iter().map(|bucket| {
            (
                bucket.repeats,
                bucket.different,
                bucket.equal_weight.round(),
                bucket.different_weight.round(),
            )
        });
        let text = format!(
            "{:?} {} {} {:?}",
            status.allowed,
            status.keys,
            status.keys_alone,
            weights.collect::<Vec<_>>()
        );
        (subject, text)
    })
    .collect()
}

fn open(path: &Path, wall: Duration) -> Evidences {
    Evidences::open_at(path, 0.01, wall, Instant::now())
        .unwrap()
        .unwrap()
}

/// Evidence about two tools, in a file.
fn written(path: &Path, wall: Duration) -> Evidences {
    let (evidences, now) = (open(path, wall), Instant::now());
    observe_equal(
        &evidences.of(&subject("read", 1, u128::MAX)),
        900,
        1,
        10,
        now,
    );
    let tool = evidences.of(&subject("list \"all\"", u128::MAX, 0));
    observe_equal(&tool, 3, 1, 300, now);
    tool.observe(1, 1, seconds(3), false, now);
    assert!(evidences.save_at(wall, now).unwrap());
    evidences
}

#[test]
fn evidence_survives_a_restart_and_ages_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let wall = 20_000 * DAY;
    let before = written(&path, wall);
    assert!(!before.save_at(wall, Instant::now()).unwrap());
    let (secret, shown) = (before.secret(), seen(&before));
    drop(before);

    let after = open(&path, wall);
    assert_eq!(after.secret(), secret);
    assert_eq!(seen(&after), shown);
    let tool = after.of(&subject("read", 1, u128::MAX));
    assert_eq!(tool.allowed(), seconds(10));
    let other = after.of(&subject("list \"all\"", u128::MAX, 0));
    assert!(other.stands_alone(1) && !other.stands_alone(0));
    // its verification starts anew
    assert!((0..100).all(|_| tool.verifies(1, seconds(1), 0.99, Instant::now())));
    drop(after);

    let later = open(&path, wall + 2 * DAY);
    let tool = later.of(&subject("read", 1, u128::MAX));
    assert_eq!(tool.allowed(), Duration::ZERO);
    let weight = tool.status().buckets[0].equal_weight;
    assert!((weight - 225.0).abs() < 0.1, "{weight}");
    drop(later);

    let set_back = open(&path, wall - 900 * DAY);
    assert_eq!(seen(&set_back), shown);
}

#[test]
fn a_restart_does_not_let_a_key_count_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    for restart in 0..5 {
        let evidences = open(&path, DAY);
        let tool = evidences.of(&subject("read", 1, 1));
        for session in 0..8 {
            for key in 0..9 {
                tool.observe(key, session, seconds(1), true, Instant::now());
            }
        }
        let weight = tool.status().buckets[0].equal_weight;
        assert!(weight <= 9.0 * 33.2 + 1e-6, "{restart}: {weight}");
        assert!(evidences.save_at(DAY, Instant::now()).unwrap());
    }
    let evidences = open(&path, DAY);
    assert_eq!(
        evidences.of(&subject("read", 1, 1)).allowed(),
        Duration::ZERO
    );
}

#[test]
fn a_bucket_removed_before_a_restart_stays_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let (evidences, now) = (open(&path, DAY), Instant::now());
    let tool = evidences.of(&subject("read", 1, 1));
    observe_equal(&tool, 3_000, 1, 1, now);
    tool.observe(1, 1, seconds(1), false, now);
    assert!(evidences.save_at(DAY, now).unwrap());
    drop((evidences, tool));
    let evidences = open(&path, DAY);
    let tool = evidences.of(&subject("read", 1, 1));
    assert_eq!(tool.allowed(), Duration::ZERO);
    tool.observe(2, 1, seconds(1), true, Instant::now());
    assert_eq!(tool.allowed(), seconds(1));
}

#[test]
fn other_odds_after_a_restart_count_each_key_by_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let (evidences, mut now) = (open(&path, DAY), Instant::now());
    let tool = evidences.of(&subject("read", 1, 1));
    for session in 0..30 {
        now += Duration::from_secs(1);
        for key in 0..4 {
            tool.observe(key, session, seconds(1), true, now);
            now += Duration::from_secs(301);
        }
    }
    assert!(evidences.save_at(DAY, now).unwrap());
    drop((evidences, tool));
    // at 5 % a bucket needs 65, of which a key contributes 6.5
    let reopened = Evidences::open_at(&path, 0.05, DAY, Instant::now())
        .unwrap()
        .unwrap();
    let tool = reopened.of(&subject("read", 1, 1));
    assert!(tool.status().buckets[0].equal_weight <= 26.0 + 1e-9);
    assert_eq!(tool.allowed(), Duration::ZERO);
}

#[test]
fn one_process_holds_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let first = Evidences::open(&path, 0.01).unwrap().unwrap();
    assert!(Evidences::open(&path, 0.01).unwrap().is_none());
    assert!(first.save().unwrap());
    drop(first);
    assert!(Evidences::open(&path, 0.01).unwrap().is_some());
    assert!(!Evidences::new(0.01).save().unwrap());
    assert!(Evidences::open(&directory.path().join("no/such"), 0.01).is_err());
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let evidences = written(&path, DAY);
    evidences
        .of(&subject("read", 1, 1))
        .observe(1, 1, seconds(1), true, Instant::now());
    assert!(evidences.save().unwrap());
    for name in ["evidence", "evidence.lock"] {
        let mode = fs::metadata(directory.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!directory.path().join("evidence.tmp").exists());
}

#[test]
fn a_file_cut_or_changed_anywhere_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    let (evidences, now) = (open(&path, DAY), Instant::now());
    let tool = evidences.of(&subject("read", 1, 1));
    observe_equal(&tool, 2, 1, 10, now);
    tool.observe(1, 1, seconds(3), false, now);
    assert!(evidences.save_at(DAY, now).unwrap());
    drop((evidences, tool));
    let whole = fs::read(&path).unwrap();
    assert!(Snapshot::decode(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(Snapshot::decode(&whole[..length]).is_err(), "{length}");
    }
    for at in 0..whole.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= bit;
            assert!(Snapshot::decode(&changed).is_err(), "{at}");
        }
    }
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let evidences = open(&path, DAY);
    assert!(evidences.all().is_empty());
    let aside = fs::read(directory.path().join("evidence.set-aside")).unwrap();
    assert_eq!(aside, whole[..whole.len() / 2]);
    assert!(evidences.save_at(DAY, now).unwrap());
    assert!(Snapshot::decode(&fs::read(&path).unwrap()).is_ok());
}

#[test]
fn a_file_of_another_version_or_kind_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    drop(written(&path, DAY));
    let text = fs::read_to_string(&path).unwrap();
    let body = &text[..text.len() - end_of(&[]).len()];
    let table = [
        (r#""version":1"#, r#""version":2"#),
        ("tollgate-evidence", "something-else"),
        (r#""different":0.0"#, r#""different":-1.0"#),
        (r#""different":0.0"#, r#""different":1e999"#),
        (r#""set":"files""#, r#""set":"no__set""#),
        ("[[0,", "[[6,"),
    ];
    for (from, to) in table {
        assert!(body.contains(from), "{from}");
        let other = body.replacen(from, to, 1);
        fs::write(&path, format!("{other}{}", end_of(other.as_bytes()))).unwrap();
        assert!(open(&path, DAY).all().is_empty(), "{to}");
        assert!(!path.exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in "[\\[\\]{}\":,0-9eE.+\\-a-z_\n]{0,200}",
    ) {
        for body in [&bytes[..], text.as_bytes()] {
            prop_assert!(Snapshot::decode(body).is_err());
            let with_end = [body, end_of(body).as_bytes()].concat();
            prop_assert!(Snapshot::decode(&with_end).is_err());
        }
    }

    /// Any weights that a file may hold give evidence without a panic, and no key more than its part.
    #[test]
    fn any_weights_are_taken(
        weights in prop::collection::vec((0..6_usize, any::<bool>(), 0.0..1e300_f64, 0.0..1e300_f64, any::<f64>()), 0..20),
        alone: bool,
        forgotten: u64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("evidence");
        let buckets = vec![serde_json::json!({"different": 0.0, "granted": true, "repeats": u64::MAX, "differences": 3}); 6];
        let mut body = format!("{}\n", serde_json::json!({"format": "tollgate-evidence", "version": 1, "secret": [1, 2], "saved_ms": u64::MAX}));
        let line = serde_json::json!({
            "set": "a", "tool": "b", "definition": "1", "partition": "2", "buckets": buckets,
            "forgotten": forgotten, "keys": [["7", alone, weights]],
        });
        body += &format!("{line}\n");
        fs::write(&path, format!("{body}{}", end_of(body.as_bytes()))).unwrap();
        let evidences = open(&path, DAY);
        for (_, tool) in evidences.all() {
            prop_assert_eq!(tool.allowed(), Duration::ZERO);
            tool.observe(7, 1, seconds(1), true, Instant::now());
            tool.observe(8, 1, seconds(1), false, Instant::now());
            let _ = tool.status();
        }
        prop_assert!(evidences.save_at(DAY, Instant::now()).unwrap());
    }

    /// Whatever is observed: equal observations of one visit help only so much, the weights are those of
    /// the keys, and what is kept is what was known.
    #[test]
    fn whatever_is_observed_the_sums_agree(
        observations in prop::collection::vec((0..12_u128, 0..4_u64, 0..400_u64, prop::bool::weighted(0.95), 0..200_u64), 0..400),
        draw in any::<f64>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("evidence");
        let (evidences, mut now) = (open(&path, DAY), Instant::now());
        let tool = evidences.of(&subject("read", 1, 1));
        let mut differed = std::collections::HashSet::new();
        for (key, session, gap, equal, pause) in observations {
            now += Duration::from_secs(pause);
            tool.observe(key, session, Duration::from_secs(gap), equal, now);
            if !equal && gap <= 300 {
                differed.insert(key);
            }
            prop_assert!(tool.allowed_for(key, now) <= seconds(300));
            tool.verifies(key, Duration::from_secs(gap), draw, now);
        }
        for key in 0..13 {
            prop_assert_eq!(tool.stands_alone(key), differed.contains(&key));
        }
        evidences.save_at(DAY, now).unwrap();
        let before = seen(&evidences);
        drop((evidences, tool));
        prop_assert_eq!(seen(&open(&path, DAY)), before);
    }
}
