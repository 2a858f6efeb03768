//! What evidence is after a restart, and after accidents to its file.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use tokio::time::Instant;

use super::{DAY, observe_equal, seconds, subject};
use crate::evidence::bucket::EDGES;
use crate::evidence::file::decode;
use crate::evidence::{Evidences, ToolEvidence};

/// A directory with a file of evidence.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("evidence")
    }

    fn open(&self, odds: f64, wall: Duration) -> Evidences {
        let evidences = Evidences::open(&self.path(), odds, wall);
        evidences.unwrap()
    }

    /// Opens the file, and finds the evidence about one tool.
    fn tool(&self) -> (Evidences, Arc<ToolEvidence>) {
        let evidences = self.open(0.01, DAY);
        let tool = evidences.of(&subject("read", 1, 1));
        (evidences, tool)
    }

    /// Writes evidence about two tools.
    fn write(&self, wall: Duration) -> Evidences {
        let evidences = self.open(0.01, wall);
        let tool = evidences.of(&subject("read", 1, 1));
        let now = observe_equal(&tool, 900, &EDGES[..3], Instant::now());
        let tool = evidences.of(&subject("list \"all\"", u128::MAX, 0));
        let now = observe_equal(&tool, 3, &EDGES, now);
        tool.observe(1, 1, seconds(3), false, now);
        assert!(evidences.save(wall, now).unwrap());
        evidences
    }
}

/// What can be seen of all evidence, the weights apart.
fn seen(evidences: &Evidences) -> (String, Vec<f64>) {
    let (mut text, mut weights) = (String::new(), Vec::new());
    for (subject, tool) in evidences.all() {
        let mut status = tool.status();
        for bucket in &mut status.buckets {
            weights.push(std::mem::take(&mut bucket.equal_weight));
            weights.push(std::mem::take(&mut bucket.different_weight));
        }
        text += &format!("{subject:?}: {status:?}\n");
    }
    (text, weights)
}

/// Returns `true` if both are the same but for a part of a weight: time has passed, and a key's
/// share of the tool's evidence, of later observations, is kept up to the key's own evidence.
fn agree(one: &(String, Vec<f64>), other: &(String, Vec<f64>)) -> bool {
    let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1.0;
    one.0 == other.0 && one.1.iter().zip(&other.1).all(near)
}

#[test]
fn evidence_survives_a_restart_and_ages_meanwhile() {
    let (disk, wall) = (Disk::new(), 20_000 * DAY);
    let before = disk.write(wall);
    assert!(!before.save(wall, Instant::now()).unwrap());
    let read = |evidences: &Evidences| evidences.of(&subject("read", 1, 1));
    let weight = |evidences: &Evidences| read(evidences).status().buckets[0].equal_weight;
    let (secret, shown, saved) = (before.secret, seen(&before), weight(&before));
    drop(before);
    let after = disk.open(0.01, wall);
    assert_eq!(after.secret, secret);
    assert!(agree(&seen(&after), &shown));
    assert_eq!(read(&after).allowed(), seconds(10));
    let other = after.of(&subject("list \"all\"", u128::MAX, 0));
    assert!(other.stands_alone(1) && !other.stands_alone(0));
    // its verification starts again
    let tool = read(&after);
    assert!((0..100).all(|_| tool.verifies(1, seconds(1), 0.99, Instant::now())));
    drop(after);
    let later = disk.open(0.01, wall + 2 * DAY);
    assert_eq!(read(&later).allowed(), Duration::ZERO);
    let ratio = weight(&later) / saved;
    assert!((ratio - 0.25).abs() < 1e-3, "{ratio}");
    drop(later);
    let back = disk.open(0.01, wall - 900 * DAY);
    assert!(agree(&seen(&back), &shown));
}

#[test]
fn a_restart_does_not_let_a_key_count_twice() {
    let disk = Disk::new();
    for restart in 0..5 {
        let mut now = Instant::now();
        let (evidences, tool) = disk.tool();
        for session in 0..8 {
            for key in 0..9 {
                tool.observe(key, session, seconds(1), true, now);
                now += seconds(1);
            }
        }
        let weight = tool.status().buckets[0].equal_weight;
        assert!(weight <= 9.0 * 33.2 + 1e-6, "{restart}: {weight}");
        assert!(evidences.save(DAY, now).unwrap());
    }
    assert_eq!(disk.tool().1.allowed(), Duration::ZERO);
}

#[test]
fn a_bucket_removed_before_a_restart_stays_removed() {
    let disk = Disk::new();
    let (evidences, tool) = disk.tool();
    let now = observe_equal(&tool, 3_000, &[1], Instant::now());
    tool.observe(1, 1, seconds(1), false, now);
    assert!(evidences.save(DAY, now).unwrap());
    drop(evidences);
    let (_evidences, tool) = disk.tool();
    assert_eq!(tool.allowed(), Duration::ZERO);
    tool.observe(2, 1, seconds(1), true, Instant::now());
    assert_eq!(tool.allowed(), seconds(1));
}

#[test]
fn one_process_holds_the_file() {
    let disk = Disk::new();
    let open = || Evidences::open(&disk.path(), 0.01, DAY);
    let first = open().unwrap();
    let error = open().unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    assert!(first.save(DAY, Instant::now()).unwrap());
    drop(first);
    assert!(open().is_ok());
    assert!(!Evidences::new(0.01).save(DAY, Instant::now()).unwrap());
    assert!(Evidences::open(&disk.path().join("no"), 0.01, DAY).is_err());
}

#[cfg(unix)]
#[test]
fn the_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let disk = Disk::new();
    disk.write(DAY);
    for name in ["evidence", "evidence.lock"] {
        let file = fs::metadata(disk.0.path().join(name)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(!disk.0.path().join("evidence.tmp").exists());
}

#[cfg(unix)]
#[test]
fn a_special_file_in_place_of_the_file_is_refused() {
    let disk = Disk::new();
    for special in [disk.path(), disk.path().with_extension("lock")] {
        // not a pipe: `mkfifo` would hold the locks of other tests until it runs
        let _socket = std::os::unix::net::UnixListener::bind(&special).unwrap();
        let error = Evidences::open(&disk.path(), 0.01, DAY).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        fs::remove_file(special).unwrap();
    }
}

#[test]
fn a_file_that_is_cut_or_of_another_kind_is_set_aside() {
    let disk = Disk::new();
    let (evidences, tool) = disk.tool();
    let now = observe_equal(&tool, 2, &EDGES[..3], Instant::now());
    tool.observe(1, 1, seconds(3), false, now);
    assert!(evidences.save(DAY, now).unwrap());
    drop(evidences);
    let text = fs::read_to_string(disk.path()).unwrap();
    assert!(decode(text.as_bytes()).is_ok());
    for length in 0..text.len() {
        assert!(decode(&text.as_bytes()[..length]).is_err(), "{length}");
    }
    let table = [
        ("callward-evidence 2", "callward-evidence 1"),
        ("callward-evidence 2", "something-else"),
        ("[0.0,0.0]", "[0.0,-1.0]"),
        ("[0.0,0.0]", "[0.0,1e999]"),
        ("[0.0,0.0],[0.0,0.0]", "[0.0,0.0]"),
        (r#""set":"files""#, r#""set":"no__set""#),
    ];
    for (from, to) in table {
        assert!(text.contains(from), "{from}");
        let other = text.replacen(from, to, 1);
        fs::write(disk.path(), &other).unwrap();
        let evidences = disk.open(0.01, DAY);
        assert!(evidences.all().is_empty() && !disk.path().exists(), "{to}");
        let aside = disk.path().with_extension("set-aside");
        assert_eq!(fs::read_to_string(aside).unwrap(), other);
        assert!(evidences.save(DAY, Instant::now()).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

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
        let disk = Disk::new();
        let tallies: Vec<_> = equal.iter().zip(different).collect();
        let tallies = serde_json::json!({"tallies": tallies, "granted": granted});
        let counts = vec![serde_json::json!({"repeats": u64::MAX, "different": 3}); 6];
        let body = serde_json::json!({
            "format": "callward-evidence 2", "secret": [1, 2], "saved_ms": u64::MAX,
            "tools": [[
                {"set": "a", "tool": "b", "definition": 1, "partition": 2},
                {
                    "tallies": tallies, "counts": counts, "forgotten": forgotten,
                    "keys": [[7, {"tallies": tallies, "contributed": contributed, "alone": alone}]],
                },
            ]],
        });
        fs::write(disk.path(), body.to_string()).unwrap();
        let evidences = disk.open(0.01, DAY);
        for (_, tool) in evidences.all() {
            prop_assert_eq!(tool.allowed(), Duration::ZERO);
            tool.observe(7, 1, seconds(1), true, Instant::now());
            tool.observe(8, 1, seconds(1), false, Instant::now());
            let _ = tool.status();
        }
        prop_assert!(evidences.save(DAY, Instant::now()).unwrap());
    }

    /// Whatever is observed: equal observations of one visit help only so much, the weights are
    /// those of the keys, and what is kept is what was known.
    #[test]
    fn sums_agree_for_any_observations(
        observations in prop::collection::vec((0..12_u128, 0..4_u64, 0..400_u64, prop::bool::weighted(0.95), 0..200_u64), 0..400),
        draw in any::<f64>(),
    ) {
        let (disk, mut now) = (Disk::new(), Instant::now());
        let (evidences, tool) = disk.tool();
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
        evidences.save(DAY, now).unwrap();
        let before = seen(&evidences);
        drop(evidences);
        let after = seen(&disk.open(0.01, DAY));
        prop_assert!(agree(&after, &before), "{after:?} {before:?}");
    }
}
