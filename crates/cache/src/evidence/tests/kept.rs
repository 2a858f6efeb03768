//! What evidence is after a restart, and after accidents to its file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::{DAY, observe_equal, seconds, subject};
use crate::evidence::bucket::EDGES;
use crate::evidence::format::{Snapshot, checksum_line};
use crate::evidence::{Evidences, Subject};

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
    let evidences = open(path, wall);
    let tool = evidences.of(&subject("read", 1, u128::MAX));
    let now = observe_equal(&tool, 900, &EDGES[..3], Instant::now());
    let tool = evidences.of(&subject("list \"all\"", u128::MAX, 0));
    let now = observe_equal(&tool, 3, &EDGES, now);
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
    let weight = |evidences: &Evidences| {
        let tool = evidences.of(&subject("read", 1, u128::MAX));
        tool.status().buckets[0].equal_weight
    };
    let saved = weight(&before);
    drop(before);

    let after = open(&path, wall);
    assert_eq!(after.secret(), secret);
    assert_eq!(seen(&after), shown);
    let tool = after.of(&subject("read", 1, u128::MAX));
    assert_eq!(tool.allowed(), seconds(10));
    let other = after.of(&subject("list \"all\"", u128::MAX, 0));
    assert!(other.stands_alone(1) && !other.stands_alone(0));
    // its verification starts again
    assert!((0..100).all(|_| tool.verifies(1, seconds(1), 0.99, Instant::now())));
    drop(after);

    let later = open(&path, wall + 2 * DAY);
    let tool = later.of(&subject("read", 1, u128::MAX));
    assert_eq!(tool.allowed(), Duration::ZERO);
    let ratio = weight(&later) / saved;
    assert!((ratio - 0.25).abs() < 1e-3, "{ratio}");
    drop((later, tool));

    let set_back = open(&path, wall - 900 * DAY);
    assert_eq!(seen(&set_back), shown);
}

#[test]
fn a_restart_does_not_let_a_key_count_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("evidence");
    for restart in 0..5 {
        let mut now = Instant::now();
        let evidences = open(&path, DAY);
        let tool = evidences.of(&subject("read", 1, 1));
        for session in 0..8 {
            for key in 0..9 {
                tool.observe(key, session, seconds(1), true, now);
                now += seconds(1);
            }
        }
        let weight = tool.status().buckets[0].equal_weight;
        assert!(weight <= 9.0 * 33.2 + 1e-6, "{restart}: {weight}");
        assert!(evidences.save_at(DAY, now).unwrap());
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
    let evidences = open(&path, DAY);
    let tool = evidences.of(&subject("read", 1, 1));
    let now = observe_equal(&tool, 3_000, &[1], Instant::now());
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
fn the_file_is_readable_by_its_owner_only() {
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
    let evidences = open(&path, DAY);
    let tool = evidences.of(&subject("read", 1, 1));
    let now = observe_equal(&tool, 2, &EDGES[..3], Instant::now());
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
    let body = &text[..text.len() - checksum_line(&[]).len()];
    let table = [
        ("callward-evidence 1", "callward-evidence 2"),
        ("callward-evidence 1", "something-else"),
        ("[0.0,0.0]", "[0.0,-1.0]"),
        ("[0.0,0.0]", "[0.0,1e999]"),
        ("[0.0,0.0],[0.0,0.0]", "[0.0,0.0]"),
        (r#""set":"files""#, r#""set":"no__set""#),
    ];
    for (from, to) in table {
        assert!(body.contains(from), "{from}");
        let other = body.replacen(from, to, 1);
        fs::write(&path, format!("{other}{}", checksum_line(other.as_bytes()))).unwrap();
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
            let with_end = [body, checksum_line(body).as_bytes()].concat();
            prop_assert!(Snapshot::decode(&with_end).is_err());
        }
    }

    /// Any weights that a file may hold give evidence without a panic, and no key more than its
    /// part.
    #[test]
    fn any_weights_are_taken(
        equal in prop::array::uniform6(0.0..1e300_f64),
        different in prop::array::uniform6(0.0..1e300_f64),
        contributed in prop::array::uniform6(any::<f64>().prop_filter("JSON", |part| part.is_finite())),
        granted in prop::array::uniform6(any::<bool>()),
        alone: bool,
        forgotten: u64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("evidence");
        let tallies: Vec<_> = equal.iter().zip(different).collect();
        let tallies = serde_json::json!({"tallies": tallies, "granted": granted});
        let counts = vec![serde_json::json!({"repeats": u64::MAX, "different": 3}); 6];
        let body = serde_json::json!({
            "format": "callward-evidence 1", "secret": [1, 2], "saved_ms": u64::MAX,
            "tools": [[
                {"set": "a", "tool": "b", "definition": 1, "partition": 2},
                {
                    "tallies": tallies, "counts": counts, "forgotten": forgotten,
                    "keys": [[7, {"tallies": tallies, "contributed": contributed, "alone": alone}]],
                },
            ]],
        });
        let body = format!("{body}\n");
        fs::write(&path, format!("{body}{}", checksum_line(body.as_bytes()))).unwrap();
        let evidences = open(&path, DAY);
        for (_, tool) in evidences.all() {
            prop_assert_eq!(tool.allowed(), Duration::ZERO);
            tool.observe(7, 1, seconds(1), true, Instant::now());
            tool.observe(8, 1, seconds(1), false, Instant::now());
            let _ = tool.status();
        }
        prop_assert!(evidences.save_at(DAY, Instant::now()).unwrap());
    }

    /// Whatever is observed: equal observations of one visit help only so much, the weights are
    /// those of the keys, and what is kept is what was known.
    #[test]
    fn sums_agree_for_any_observations(
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
