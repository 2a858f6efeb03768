//! The file, and what a gateway knows of it.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::Keys;
use super::*;
use crate::Reason;

const START: SystemTime = SystemTime::UNIX_EPOCH;

fn at(seconds: u64) -> SystemTime {
    START + Duration::from_secs(seconds)
}

fn empty() -> (TempDir, KeyFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::new(folder.path().join("keys.json"));
    (folder, file)
}

fn named(name: &str) -> NewKey {
    NewKey {
        name: name.to_owned(),
        ..NewKey::default()
    }
}

fn set_mode(file: &KeyFile, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(file.path(), permissions).unwrap();
}

#[test]
fn a_key_is_written_as_its_hash_and_read_back() {
    let (folder, file) = empty();
    let mut new = named("ci");
    new.roles = ["dev".to_owned()].into();
    new.scopes = Some(["tools:read".to_owned()].into());
    new.expires = Some(at(100));
    let (secret, entry) = file.create(new, at(10)).unwrap();
    assert_eq!(file.list().unwrap(), std::slice::from_ref(&entry));
    let caller = Keys::open(file).unwrap().check(secret.expose(), at(20));
    let caller = caller.unwrap();
    assert_eq!(caller.principal.as_str(), format!("key#{}", entry.id));
    let credential = &caller.credential;
    assert_eq!(credential.kind, callward_core::CredentialKind::ApiKey);
    assert_eq!(credential.name.as_deref(), Some("ci"));
    assert_eq!(credential.roles, ["dev".to_owned()].into());
    assert_eq!(credential.scopes, Some(["tools:read".to_owned()].into()));
    assert_eq!(credential.expires, Some(at(100)));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.metadata().unwrap()), 0o600, "{entry:?}");
        let text = std::fs::read_to_string(entry.path()).unwrap();
        assert!(!text.contains(&secret.expose()[4..47]));
    }
}

#[test]
fn a_file_that_is_shared_or_invalid_is_refused_without_its_text() {
    let (_folder, file) = empty();
    assert_eq!(file.list().unwrap(), []);
    let (_, entry) = file.create(named("a"), START).unwrap();
    let written = std::fs::read_to_string(file.path()).unwrap();
    let entry = serde_json::to_string(&entry).unwrap();
    for (text, said) in [
        ("", ":1: expected the keys"),
        ("{\"keys\":\n\"cwk_pasted\"}", ":2: expected the keys"),
        (
            &written.replace("\"name\"", "\"cwk_pasted\""),
            ": expected the keys",
        ),
        (
            &format!("{{\"keys\":[{entry},{entry}]}}"),
            "a key is there twice",
        ),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let error = file.list().unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("pasted"), "{error}");
    }
    std::fs::write(file.path(), written).unwrap();
    for (mode, is_refused) in [(0o600, false), (0o400, false), (0o640, true), (0o602, true)] {
        set_mode(&file, mode);
        let read = file.list();
        assert_eq!(read.is_err(), is_refused, "{mode:o}");
        let said = read.err().map(|error| error.to_string());
        assert!(said.is_none_or(|said| said.contains("run `chmod 600 ")));
    }
}

#[test]
fn a_pipe_or_a_folder_is_refused_at_once() {
    let (folder, file) = empty();
    let made = std::process::Command::new("mkfifo")
        .arg(file.path())
        .status();
    assert!(made.unwrap().success());
    for file in [file, KeyFile::new(folder.path())] {
        let error = Keys::open(file).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}

#[test]
fn names_are_words_and_only_one_valid_key_has_each() {
    let (_folder, file) = empty();
    let long = "a".repeat(129);
    for name in ["", "a b", "a\n", "cwk_a", &long] {
        let refused = file.create(named(name), START).unwrap_err();
        assert!(matches!(refused, KeyError::Word("the name")), "{name}");
    }
    let mut new = named("a");
    new.scopes = Some(["a b".to_owned()].into());
    let refused = file.create(new, START).unwrap_err();
    assert!(matches!(refused, KeyError::Word("a scope")));

    let (_, first) = file.create(named("a"), START).unwrap();
    for taken in ["a", &first.id] {
        let refused = file.create(named(taken), START).unwrap_err();
        assert!(matches!(refused, KeyError::Taken(_)), "{taken}");
    }
    assert!(matches!(file.revoke("b", START), Err(KeyError::NoSuchKey)));
    assert_eq!(file.revoke("a", at(5)).unwrap().id, first.id);
    let (_, second) = file.create(named("a"), START).unwrap();
    assert_eq!(file.revoke("a", at(6)).unwrap().id, second.id);
    // it stays revoked since then
    let again = file.revoke(&first.id, at(7)).unwrap();
    assert_eq!(again.revoked, Some(Timestamp::new(at(5))));
}

#[test]
fn processes_that_create_keys_at_once_lose_none() {
    let (_folder, file) = empty();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for key in 0..5 {
                    file.create(named(&format!("{thread}-{key}")), START)
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(file.list().unwrap().len(), 20);
}

#[test]
fn a_gateway_sees_changes_and_keeps_its_keys_if_the_file_is_lost() {
    let (_folder, file) = empty();
    let keys = Keys::open(file.clone()).unwrap();
    assert!(!keys.refresh().unwrap());
    let (secret, entry) = file.create(named("a"), START).unwrap();
    let reason = |keys: &Keys| {
        keys.check(secret.expose(), at(60))
            .err()
            .map(|it| it.reason)
    };
    assert_eq!(reason(&keys), Some(Reason::UnknownKey));
    assert!(keys.refresh().unwrap() && !keys.refresh().unwrap());
    assert_eq!(reason(&keys), None);

    let written = std::fs::read(file.path()).unwrap();
    set_mode(&file, 0o644);
    assert!(matches!(keys.refresh(), Err(KeyError::Shared { .. })));
    set_mode(&file, 0o600);
    assert!(keys.refresh().unwrap());
    std::fs::write(file.path(), "").unwrap();
    assert!(matches!(keys.refresh(), Err(KeyError::Invalid { .. })));
    std::fs::remove_file(file.path()).unwrap();
    assert!(matches!(keys.refresh(), Err(KeyError::Io { .. })));
    assert_eq!(reason(&keys), None);
    std::fs::write(file.path(), written).unwrap();
    set_mode(&file, 0o600);

    keys.save_used().unwrap();
    assert_eq!(file.last_used()[&entry.id], Timestamp::new(at(60)));
    file.revoke("a", START).unwrap();
    assert!(keys.refresh().unwrap());
    assert_eq!(reason(&keys), Some(Reason::Revoked));
    // what another gateway has seen later stays
    let later = BTreeMap::from([(entry.id.clone(), Timestamp::new(at(90)))]);
    file.add_used(later).unwrap();
    keys.save_used().unwrap();
    assert_eq!(file.last_used()[&entry.id], Timestamp::new(at(90)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_text_is_accepted_iff_it_is_a_stored_valid_key(
        keys in prop::collection::vec((any::<bool>(), prop::option::of(0_u64..20)), 1..4),
        now in 0_u64..20,
        change in (0_usize..53, "[A-Za-z0-9_-]"),
        other in "cwk_[A-Za-z0-9_-]{49}|\\PC{0,60}",
    ) {
        let (_folder, file) = empty();
        let mut secrets = Vec::new();
        for (number, (is_revoked, expires)) in keys.iter().enumerate() {
            let mut new = named(&number.to_string());
            new.expires = expires.map(at);
            secrets.push(file.create(new, START).unwrap().0);
            if *is_revoked {
                file.revoke(&number.to_string(), START).unwrap();
            }
        }
        let known = Keys::open(file).unwrap();
        let is_accepted = |text: &str| known.check(text, at(now)).is_ok();
        for (secret, (is_revoked, expires)) in secrets.iter().zip(&keys) {
            let key = secret.expose();
            let is_valid = !is_revoked && expires.is_none_or(|end| now < end);
            prop_assert_eq!(is_accepted(key), is_valid);
            let mut changed = key.to_owned();
            changed.replace_range(change.0..=change.0, &change.1);
            prop_assert_eq!(is_accepted(&changed), is_valid && changed == key);
        }
        prop_assert!(!is_accepted(&other));
    }
}
