//! Processes that are killed while they approve and run.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};

use callward_approval::{
    Approvals, Asked, Grant, LocalStore, Outcome, Request, RequestId, State, Store,
};
use callward_core::Principal;
use tempfile::TempDir;

use crate::bed::{call, decision, wipe};
use crate::file::open;

/// Where the child keeps its requests.
const CHILD: &str = "APPROVAL_CHILD";
/// How many approvals the children get, at least.
const APPROVALS: usize = 1_000;
/// How many each child gets by its grant.
const USES: u32 = 10;

/// Approves and runs until it is killed. It says what is decided once it is stored.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(runs(Path::new(&path)));
}

#[expect(clippy::print_stdout, reason = "its parent reads the lines")]
async fn runs(path: &Path) {
    let approvals = open(path).await;
    for request in approvals.list().await.unwrap() {
        if request.state == State::Approved {
            run(path, &approvals, &request.id).await;
        }
    }
    let process = std::process::id();
    let mut grant = Grant::new(&wipe(), Principal::new("ops")).unwrap();
    grant.uses = NonZeroU32::new(USES);
    grant.when = Some(
        serde_json::json!({ "granted": process })
            .try_into()
            .unwrap(),
    );
    approvals.grant(grant).await.unwrap();
    for number in 0.. {
        let member = ["granted", "asked", "asked"][number % 3];
        let arguments = format!(r#"{{"{member}":{process},"number":{number}}}"#);
        let asked = Asked::of(&call(&arguments), "x").unwrap();
        let request = approvals.request(asked).await.unwrap();
        let id = &request.id;
        if request.state == State::Pending {
            approvals.decide(id, decision(true, None)).await.unwrap();
        }
        println!("\ndecided {id}");
        run(path, &approvals, id).await;
    }
}

async fn run(path: &Path, approvals: &Approvals, id: &RequestId) {
    let execution = approvals.consume(id).await.unwrap();
    let path = path.with_extension("executed");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(format!("{id}\n").as_bytes()).unwrap();
    file.sync_data().unwrap();
    execution.end(Outcome::Succeeded).await;
}

/// Starts a child and kills it after it has decided this often. Returns what it decided.
fn decided(path: &Path, count: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child_that_is_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map_while(Result::ok);
    let mut said = lines.filter_map(|line| Some(line.strip_prefix("decided ")?.to_owned()));
    let mut seen: Vec<_> = said.by_ref().take(count).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.len() >= count);
    // what it said before it ended; the last line may be cut
    seen.extend(said.filter(|id| id.len() == 32));
    seen
}

#[tokio::test]
async fn kills_lose_no_decision_and_run_no_call_twice() {
    // in memory if there is such a place: a kill loses no page of the system's, so that waiting for
    // the disk would test nothing
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let folder = folder.unwrap();
    let path = folder.path().join("approvals.redb");
    let mut all_decided = HashSet::new();
    while all_decided.len() < APPROVALS {
        // each of them has its own keys
        let random = RandomState::new().build_hasher().finish();
        let count = usize::try_from(random % 160).unwrap();
        all_decided.extend(decided(&path, count));

        let store = LocalStore::open(&path).await.unwrap();
        let all = store.list().await.unwrap();
        let all: HashMap<_, _> = all.iter().map(|one| (one.id.as_str(), &**one)).collect();
        let approved = |request: &&Request| request.decision.as_ref().is_some_and(|it| it.approves);
        for id in &all_decided {
            assert!(all.get(&**id).is_some_and(approved), "{id} is lost");
        }
        let executed = fs::read_to_string(path.with_extension("executed")).unwrap_or_default();
        let mut once = HashSet::new();
        for id in executed.lines() {
            assert!(once.insert(id), "{id} ran twice");
            let request = all[id];
            let may = [State::Consumed, State::Succeeded, State::Unknown];
            assert!(
                approved(&request) && may.contains(&request.state),
                "{request:?}"
            );
        }
        for grant in store.grants().await.unwrap() {
            let by_it = all
                .values()
                .filter(|one| one.grant.as_ref() == Some(&grant.id));
            assert_eq!(by_it.count(), grant.used as usize, "{grant:?}");
            assert!(grant.used <= USES, "{grant:?}");
        }
    }
}
