//! The store in a file.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use callward_approval::{
    ApprovalConfig, Approvals, Asked, Grant, LocalStore, State, Store, StoreError,
};
use callward_core::Principal;
use callward_testkit::MockService;
use tempfile::TempDir;

use crate::bed::{Bed, call, decision, wipe};

pub(crate) async fn open(path: &Path) -> Approvals {
    let store = LocalStore::open(path).await.unwrap();
    Approvals::open(store, ApprovalConfig::default())
        .await
        .unwrap()
}

#[tokio::test]
async fn requests_outlive_the_process_and_an_open_run_is_unknown() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("approvals.redb");
    let (mut approvals, mut ids) = (open(&path).await, Vec::new());
    for arguments in ["1", "2", "3", "4"] {
        let asked = Asked::of(&call(arguments), "it wipes").unwrap();
        ids.push(approvals.request(asked).await.unwrap().id.clone());
    }
    for id in &ids[1..] {
        approvals.decide(id, decision(true, None)).await.unwrap();
    }
    approvals
        .consume(&ids[2])
        .await
        .unwrap()
        .end(callward_approval::Outcome::Succeeded)
        .await;
    let lost = approvals.consume(&ids[3]).await.unwrap();
    let before = approvals.get(&ids[2]).await.unwrap();
    // without its guard's drop, as at a crash
    std::mem::forget(lost);
    let raw = fs::read(&path).unwrap();
    let secret = br#""arguments""#;
    assert!(
        !raw.windows(secret.len()).any(|found| found == secret),
        "it is sealed"
    );
    // what was forgotten holds the file: a copy of it is what the next process finds
    let again = folder.path().join("copy.redb");
    fs::copy(&path, &again).unwrap();
    fs::copy(path.with_extension("key"), again.with_extension("key")).unwrap();
    approvals = open(&again).await;
    assert_eq!(approvals.get(&ids[2]).await.unwrap(), before);
    let mut states = Vec::new();
    for id in &ids {
        states.push(approvals.get(id).await.unwrap().state);
    }
    use State::{Approved, Pending, Succeeded, Unknown};
    assert_eq!(states, [Pending, Approved, Succeeded, Unknown]);
    assert!(approvals.consume(&ids[3]).await.is_err());
    let asked = Asked::of(&call("2"), "it wipes").unwrap();
    assert_eq!(
        approvals.request(asked).await.unwrap().id,
        ids[1],
        "found by its key"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn file_and_key_are_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("approvals.redb");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(LocalStore::open(&path).await.unwrap());
    for file in [path.clone(), path.with_extension("key")] {
        assert_eq!(
            fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_says_why_and_what_to_do() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("approvals.redb");
    let approvals = open(&path).await;
    let asked = Asked::of(&call("1"), "x").unwrap();
    approvals.request(asked).await.unwrap();
    let in_use = LocalStore::open(&path).await.unwrap_err();
    assert!(matches!(in_use, StoreError::InUse { .. }), "{in_use}");
    assert!(in_use.to_string().contains("end the other process"));
    drop(approvals);
    wait_until_free(&path).await;

    let key = path.with_extension("key");
    let right = fs::read(&key).unwrap();
    for wrong in [Some(vec![7; 32]), Some(vec![7; 3]), None] {
        match wrong {
            Some(wrong) => fs::write(&key, wrong).unwrap(),
            None => fs::remove_file(&key).unwrap(),
        }
        let error = LocalStore::open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
        assert!(error.to_string().contains("restore the key"));
    }
    fs::write(&key, right).unwrap();
    LocalStore::open(&path).await.unwrap();

    let whole = fs::read(&path).unwrap();
    for damaged in [vec![0; 4096], b"not a database".to_vec(), flipped(&whole)] {
        wait_until_free(&path).await;
        fs::write(&path, damaged).unwrap();
        let error = LocalStore::open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("move it away"));
    }
}

/// Changes every byte of the second half that is not 0.
fn flipped(whole: &[u8]) -> Vec<u8> {
    let mut flipped = whole.to_vec();
    for byte in flipped.iter_mut().skip(4096).filter(|byte| **byte != 0) {
        *byte ^= 0x55;
    }
    flipped
}

/// What ran in the background may hold the file for a moment.
async fn wait_until_free(path: &Path) {
    while matches!(LocalStore::open(path).await, Err(StoreError::InUse { .. })) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_wait_and_run_with_a_store_in_a_file() {
    let folder = TempDir::new().unwrap();
    let store = LocalStore::open(folder.path().join("a")).await.unwrap();
    let bed = Bed::with(store.clone(), MockService::counting()).await;
    let running = tokio::spawn({
        let service = bed.service.clone();
        tower::ServiceExt::oneshot(service, call("{}"))
    });
    let mut events = bed.approvals.events();
    if bed.approvals.list().await.unwrap().is_empty() {
        events.recv().await.unwrap();
    }
    bed.decide(true).await;
    running.await.unwrap().unwrap();
    assert_eq!(
        (bed.states().await, bed.server.started()),
        (vec![State::Succeeded], 1)
    );
    store.remove_ended(u64::MAX, 0).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
}

#[tokio::test]
async fn grants_outlive_the_process_and_a_file_of_an_older_version_opens() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("approvals.redb");
    let mut approvals = open(&path).await;
    let ops = Principal::new("ops");
    let mut grant = Grant::new(&wipe(), ops).unwrap();
    grant.when = Some(
        serde_json::json!({"id": [1, {"a": 2.5}]})
            .try_into()
            .unwrap(),
    );
    grant.principal = Some(Principal::new("ada"));
    (grant.uses, grant.used) = (NonZeroU32::new(2), 1);
    approvals.grant(grant.clone()).await.unwrap();
    let asked = Asked::of(&call(r#"{"id":[1,{"a":2.5}]}"#), "x").unwrap();
    let request = approvals.request(asked).await.unwrap();
    assert_eq!(request.grant.as_ref(), Some(&grant.id));
    grant.used = 2;
    for revoke in [false, true] {
        drop(approvals);
        wait_until_free(&path).await;
        approvals = open(&path).await;
        assert_eq!(*approvals.grants().await.unwrap()[0], grant);
        if revoke {
            approvals.revoke(&grant.id).await.unwrap();
        }
    }
    drop(approvals);
    wait_until_free(&path).await;
    // which has neither the table nor the members
    let database = redb::Database::open(&path).unwrap();
    let change = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, &[u8]>::new("grants");
    assert!(change.delete_table(table).unwrap());
    change.commit().unwrap();
    drop(database);
    approvals = open(&path).await;
    assert_eq!(approvals.grants().await.unwrap(), []);
    let mut written = serde_json::to_value(approvals.get(&request.id).await.unwrap()).unwrap();
    for member in ["grant", "in_doubt"] {
        assert!(written.as_object_mut().unwrap().remove(member).is_some());
    }
    serde_json::from_value::<callward_approval::Request>(written).unwrap();
}
