//! Verification detects changes.

use callward_audit::{AuditKey, AuditLog, Report, verify};
use proptest::prelude::*;
use serde_json::json;

use crate::bed::{Bed, pay};

/// The names and bytes of the files of a log.
type Files = Vec<(String, Vec<u8>)>;

/// Writes a log of several files.
fn written(key: Option<AuditKey>) -> Files {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let bed = Bed::new();
    let config = bed.config_with(|config| {
        config.max_bytes = 4096;
        config.key = key;
    });
    let calls = (0..20).map(|id| pay(json!({"id": id})));
    runtime.block_on(bed.record(config, calls));
    let files = bed.files().into_iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    });
    let files: Files = files.collect();
    assert!(files.len() >= 3, "{} files", files.len());
    files
}

fn written_once() -> Files {
    static ONCE: std::sync::OnceLock<Files> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| written(None)).clone()
}

/// Writes the files to a new folder and verifies them.
fn read_back(files: &[(String, Vec<u8>)]) -> Report {
    Bed::with(files).verified(None)
}

/// Returns `true` if nothing suggests a change: no fault, closed, and no partial line.
fn is_sound(report: &Report) -> bool {
    report.is_whole() && report.closed == Some(true) && report.torn == 0
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.map(<[u8]>::to_vec).collect()
}

#[test]
fn a_fault_has_its_place() {
    let mut files = written_once();
    let first = lines(&files[0].1);
    let at = first[0].len() + first[1].len();
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    files[0].1 = text.replacen("\"id\":0", "\"id\":9", 1).into_bytes();
    let fault = read_back(&files).fault.unwrap();
    assert_eq!((fault.line, fault.byte), (3, at as u64), "{fault}");
    assert!(fault.file.ends_with("audit.000001.jsonl"), "{fault}");
    assert!(fault.what.contains("edited"), "{fault}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn removed_added_moved_and_edited_lines_are_detected(
        file in 0..3_usize,
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        put in prop::collection::vec(any::<u8>(), 0..80),
        what in 0..6,
    ) {
        let mut files = written_once();
        let mut bytes = files[file].1.clone();
        let mut of = lines(&bytes);
        let (line, second) = (one.index(of.len()), other.index(of.len()));
        let at = one.index(bytes.len());
        match what {
            0 => drop(of.remove(line)),
            1 => of.insert(second, of[line].clone()),
            2 => of.swap(line, second),
            // the end of a file
            3 => of.truncate(line),
            4 => bytes[at] ^= 1 << other.index(8),
            _ => drop(bytes.splice(at..(at + second).min(bytes.len()), put)),
        }
        let edited = if what < 4 { of.concat() } else { bytes };
        prop_assume!(edited != files[file].1);
        files[file].1 = edited;
        let report = read_back(&files);
        prop_assert!(!is_sound(&report), "{:?}", report);
    }
}

#[test]
fn removed_and_swapped_files_are_detected() {
    let files = written_once();
    assert!(is_sound(&read_back(&files)));
    for gone in 0..files.len() {
        let mut left = files.clone();
        left.remove(gone);
        let report = read_back(&left);
        assert!(!is_sound(&report), "without {}: {report:?}", files[gone].0);
    }
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let mut swapped = files.clone();
        let kept = std::mem::take(&mut swapped[one].1);
        swapped[one].1 = std::mem::replace(&mut swapped[other].1, kept);
        assert!(!read_back(&swapped).is_whole(), "{one} for {other}");
    }
    let mut twice = files;
    twice[1].1 = twice[0].1.clone();
    assert!(!read_back(&twice).is_whole());
}

#[test]
fn a_closed_file_can_be_verified_alone() {
    let files = &written_once()[1..2];
    let bed = Bed::with(files);
    let path = bed.folder.path().join(&files[0].0);
    let report = verify(&[path], None).unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.closed, None);
}

#[tokio::test]
async fn a_key_seals_digests_of_arguments_that_could_be_guessed() {
    let key = AuditKey::new([7; 32]).unwrap();
    for (key, is_shown) in [(None, true), (Some(key), false)] {
        let bed = Bed::new();
        let log = AuditLog::open(&bed.config_with(|config| config.key = key)).unwrap();
        let members = json!({"outcome": "pending", "arguments_digest": "abc"});
        log.note_approval(members.as_object().unwrap().clone());
        log.close().await;
        let records = bed.records("approval");
        assert_eq!(
            records[0]["arguments_digest"] == "abc",
            is_shown,
            "{records:?}"
        );
    }
}

#[test]
fn a_keyed_log_is_whole_only_with_its_key() {
    let [key, other] = [7, 8].map(|byte| AuditKey::new([byte; 32]).unwrap());
    let bed = Bed::with(&written(Some(key.clone())));
    assert!(bed.verified(Some(&key)).is_whole());
    assert!(!bed.verified(Some(&other)).is_whole());
    assert!(!bed.verified(None).is_whole());
    // a log forged without the key
    let forged = Bed::with(&written_once()).verified(Some(&key));
    let fault = forged.fault.unwrap();
    assert!(fault.what.contains("key"), "{fault}");
    // another key cannot continue the log
    let error = AuditLog::open(&bed.config_with(|config| config.key = Some(other))).unwrap_err();
    assert!(error.to_string().contains("key"), "{error}");
}

#[test]
fn a_cut_end_shows_as_a_log_that_was_not_closed_even_after_a_restart() {
    let mut files = written_once();
    let last = &mut files[2].1;
    let mut kept = lines(last);
    kept.truncate(kept.len() - 2);
    *last = kept.concat();
    let bed = Bed::with(&files);
    assert_eq!(bed.verified(None).closed, Some(false));
    drop(bed.open());
    assert_eq!(bed.whole().unclosed, 1);
}
