//! The store in a file.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use callward_approval::{ApprovalConfig, Approvals, Asked, LocalStore, State, Store, StoreError};
use callward_testkit::MockService;
use tempfile::TempDir;

use crate::bed::{Bed, call, decision};

async fn open(path: &Path) -> Approvals {
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

/// Where the child of the next test keeps its requests.
const CHILD: &str = "APPROVAL_CHILD";

/// Approves and runs until it is killed. It says what it runs after it is stored, as a call that
/// is sent.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let approvals = open(Path::new(&path)).await;
        for request in approvals.list().await.unwrap() {
            if request.state == State::Approved {
                run(&approvals, &request.id).await;
            }
        }
        for number in 0.. {
            let asked = Asked::of(&call(&format!("[{},{number}]", std::process::id())), "x");
            let id = approvals.request(asked.unwrap()).await.unwrap().id.clone();
            approvals.decide(&id, decision(true, None)).await.unwrap();
            run(&approvals, &id).await;
        }
    });

    async fn run(approvals: &Approvals, id: &callward_approval::RequestId) {
        let execution = approvals.consume(id).await.unwrap();
        println!("\nruns {id}");
        execution.end(callward_approval::Outcome::Succeeded).await;
    }
}

#[tokio::test]
async fn what_ran_before_a_kill_is_stored_and_never_runs_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("approvals.redb");
    let mut ran = HashSet::new();
    for lines in [1, 2, 3, 5, 8, 13, 21] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "file::child_that_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut runs = output.filter_map(|line| Some(line.strip_prefix("runs ")?.to_owned()));
        let mut seen: Vec<_> = runs.by_ref().take(lines).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        // what it said before it ended
        seen.extend(runs);
        assert!(seen.len() >= lines);
        for id in seen {
            assert!(ran.insert(id.clone()), "{id} ran twice");
        }
        let store = LocalStore::open(&path).await.unwrap();
        let all = store.list().await.unwrap();
        for id in &ran {
            let request = all.iter().find(|request| request.id.as_str() == id);
            let state = request.unwrap().state;
            let may = [State::Consumed, State::Succeeded, State::Unknown];
            assert!(may.contains(&state), "{id} ran, and is {state}");
        }
    }
}
