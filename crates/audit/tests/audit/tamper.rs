//! Verification detects changes.

use std::path::{Path, PathBuf};

use callward_audit::{AuditConfig, AuditKey, AuditLog, Report, verify};
use callward_testkit::call;
use proptest::prelude::*;
use serde_json::json;
use tower::ServiceExt;

use crate::bed::{Bed, answering, audited, restricted};

/// The bytes of a log of several files.
fn written(key: Option<AuditKey>) -> Vec<(String, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bed = Bed::new();
        let config = bed.config().with_max_bytes(4096).with_key(key);
        let log = AuditLog::open(&config).unwrap();
        let pay = restricted("pay");
        for id in 0..20 {
            let asked = call(&pay, json!({"id": id}));
            audited(&log, answering()).oneshot(asked).await.unwrap();
            log.flush().await;
        }
        log.close().await;
        let files = bed.files();
        assert!(files.len() >= 3, "{files:?}");
        files
            .into_iter()
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect()
    })
}

/// Writes the files to a new folder and verifies them.
fn read_back(files: &[(String, Vec<u8>)]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    of(folder.path(), None)
}

fn of(folder: &Path, key: Option<&AuditKey>) -> Report {
    let paths: [PathBuf; 1] = [folder.join("audit.jsonl")];
    verify(&paths, key).unwrap().remove(0)
}

/// Returns `true` if nothing suggests a change: no fault, closed, and no partial line.
fn is_sound(report: &Report) -> bool {
    report.is_whole() && report.closed == Some(true) && report.torn == 0
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

#[test]
fn an_untouched_log_is_whole() {
    let report = read_back(&written(None));
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.calls, report.closed), (20, Some(true)));
}

#[test]
fn a_change_of_any_byte_is_detected() {
    // every seventh, for speed; `chain` tests every byte of a line
    let files = written(None);
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    for (name, bytes) in &files {
        let path = folder.path().join(name);
        for at in (0..bytes.len()).step_by(7) {
            let mut edited = bytes.clone();
            edited[at] ^= 1;
            std::fs::write(&path, &edited).unwrap();
            let report = of(folder.path(), None);
            assert!(!is_sound(&report), "byte {at} of {name}");
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(of(folder.path(), None).is_whole());
}

#[test]
fn a_fault_has_its_place() {
    let mut files = written(None);
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
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn removed_added_and_moved_lines_are_detected(
        file in 0..3_usize,
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        what in 0..4,
    ) {
        let mut files = written_once();
        let mut of = lines(&files[file].1);
        let (one, other) = (one.index(of.len()), other.index(of.len()));
        match what {
            0 => { of.remove(one); }
            1 => { let line = of[one].clone(); of.insert(other, line); }
            2 => {
                prop_assume!(one != other);
                of.swap(one, other);
            }
            // the end of a file
            _ => of.truncate(one),
        }
        files[file].1 = of.concat();
        let report = read_back(&files);
        prop_assert!(!is_sound(&report), "{:?}", report);
    }

    #[test]
    fn replaced_bytes_are_detected(
        file in 0..3_usize,
        at in any::<prop::sample::Index>(),
        len in 0..80_usize,
        put in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut files = written_once();
        let bytes = &mut files[file].1;
        let at = at.index(bytes.len());
        let end = (at + len).min(bytes.len());
        prop_assume!(bytes[at..end] != put[..]);
        let before = bytes.clone();
        bytes.splice(at..end, put);
        prop_assume!(*bytes != before);
        let report = read_back(&files);
        prop_assert!(!is_sound(&report), "{:?}", report);
    }
}

fn written_once() -> Vec<(String, Vec<u8>)> {
    static ONCE: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
    ONCE.get_or_init(|| written(None)).clone()
}

#[test]
fn removed_and_swapped_files_are_detected() {
    let files = written_once();
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
    let files = written_once();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&files[1].0);
    std::fs::write(&path, &files[1].1).unwrap();
    let report = verify(&[path], None).unwrap().remove(0);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.closed, None);
}

#[test]
fn a_keyed_log_is_whole_only_with_its_key() {
    let key = AuditKey::new([7; 32]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in written(Some(key.clone())) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    assert!(of(folder.path(), Some(&key)).is_whole());
    let other = AuditKey::new([8; 32]).unwrap();
    assert!(!of(folder.path(), Some(&other)).is_whole());
    assert!(!of(folder.path(), None).is_whole());
    // a log forged without the key
    let anew = tempfile::tempdir().unwrap();
    for (name, bytes) in written_once() {
        std::fs::write(anew.path().join(name), bytes).unwrap();
    }
    let fault = of(anew.path(), Some(&key)).fault.unwrap();
    assert!(fault.what.contains("key"), "{fault}");
    // another key cannot continue the log
    let config = AuditConfig::new(folder.path().join("audit.jsonl")).with_key(other);
    let error = AuditLog::open(&config).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("key"), "{source}");
}

#[test]
fn a_cut_end_shows_as_a_log_that_was_not_closed_even_after_a_restart() {
    let mut files = written_once();
    let last = &mut files[2].1;
    let mut kept = lines(last);
    kept.truncate(kept.len() - 2);
    *last = kept.concat();
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    assert_eq!(of(folder.path(), None).closed, Some(false));
    let path = folder.path().join("audit.jsonl");
    drop(AuditLog::open(&AuditConfig::new(&path).with_max_bytes(1 << 20)).unwrap());
    let report = of(folder.path(), None);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.unclosed, 1);
}
