//! What is left of stdio servers, and of all they have started, when they end: nothing. With real
//! processes, found by a variable of their environment.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod found;
#[path = "../gateway/scripted.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod scripted;
mod server;

use std::future::Future;
use std::process::Stdio;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use callward::core::{Caller, Principal, ServerEvent, SessionId};
use callward::{ErrorKind, ToolServer};
use callward_mcp::client::Upstream;
use futures_util::StreamExt;
use tokio::process::Command;

use found::{Marked, until};
use server::{CALLWARD, STUBBORN, call, script, write_of};

const LONG: Duration = Duration::from_secs(60);

/// Held alone by the test that counts this process's descriptors.
static DESCRIPTORS: RwLock<()> = RwLock::new(());

fn block_on<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(test)
}

/// Runs a test beside others. The runtime begins after the lock is taken: it has descriptors too.
fn beside_others<F: Future>(test: F) -> F::Output {
    let _shared = DESCRIPTORS.read().unwrap_or_else(PoisonError::into_inner);
    block_on(test)
}

async fn up(upstream: &Upstream) {
    upstream.ready(LONG).await.unwrap();
}

#[test]
fn nothing_is_left_when_a_client_leaves_or_shuts_down() {
    beside_others(async {
        for in_good_order in [false, true] {
            let marked = Marked::new("leaves");
            let upstream = marked.upstream(&script(STUBBORN, "says x"), |_| {});
            up(&upstream).await;
            // supervisor, shell, and three that are hard to end
            until("all run", || marked.count() >= 5).await;
            match in_good_order {
                true => upstream.shutdown().await,
                false => drop(upstream),
            }
            until("none is left", || marked.count() == 0).await;
        }
    });
}

#[test]
fn nothing_is_left_of_a_server_that_crashes_again_and_again() {
    beside_others(async {
        let marked = Marked::new("crashes");
        let dies = format!("{STUBBORN}\necho last words >&2; exit 3");
        let upstream = marked.upstream(&script("", &dies), |_| {});
        let mut events = upstream.events().unwrap();
        for _ in 0..3 {
            while events.next().await != Some(ServerEvent::Up) {}
            let error = upstream.call(call()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
        }
        while events.next().await != Some(ServerEvent::Up) {}
        until("only a supervisor and a shell run", || marked.count() == 2).await;
        drop(upstream);
        until("none is left", || marked.count() == 0).await;
    });
}

#[test]
fn a_server_outlives_its_supervisor_only_until_its_client_leaves() {
    beside_others(async {
        let marked = Marked::new("orphan");
        let upstream = marked.upstream(&script("", "says x"), |_| {});
        up(&upstream).await;
        let supervisor = marked.one_with("__supervise");
        found::signal("KILL", supervisor).await;
        until("the supervisor is gone", || marked.count() == 1).await;
        upstream.call(call()).await.unwrap();
        drop(upstream);
        until("none is left", || marked.count() == 0).await;
    });
}

/// How a gateway ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Terminated,
    /// Its client closes the pipe.
    Left,
}

#[test]
fn nothing_is_left_of_a_gateway() {
    beside_others(async {
        for (command, end) in [
            ("serve", End::Killed),
            ("serve", End::Terminated),
            ("run", End::Killed),
            ("run", End::Left),
        ] {
            let marked = Marked::new("gateway");
            let script = script(STUBBORN, "says x");
            let config = marked.config(&script);
            let mut gateway = Command::new(CALLWARD);
            match command {
                "serve" => gateway.args(["serve", "--http", "127.0.0.1:0", "--config"]),
                _ => gateway.args(["run", "--"]).args(script.command()),
            };
            if command == "serve" {
                gateway.arg(config.path());
            } else {
                gateway.env(found::MARK, marked.name());
            }
            let mut gateway = gateway
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let pid = gateway.id().unwrap();
            until("all run", || marked.count() >= 5).await;
            // Ctrl-C reaches the gateway's group, and none of these
            let supervisor = marked.one_with("__supervise");
            assert_ne!(found::group(supervisor), found::group(pid));
            match end {
                End::Killed => gateway.kill().await.unwrap(),
                End::Terminated => found::signal("TERM", pid).await,
                End::Left => drop(gateway.stdin.take()),
            }
            gateway.wait().await.unwrap();
            until("none is left", || marked.count() == 0).await;
        }
    });
}

/// Makes two hundred short sessions of this kind with servers that start what leaves its session.
async fn short_sessions<F: AsyncFn(usize)>(marked: &Marked, session: F) {
    // the runtime makes some descriptors of its own at the first child
    session(0).await;
    until("none is left", || marked.count() == 0).await;
    let before = descriptors();
    for number in 1..=200 {
        session(number).await;
    }
    until("none is left", || marked.count() == 0).await;
    // those of the first session may not all have been closed when they were counted
    until("no descriptor is left", || descriptors() <= before).await;
}

#[test]
fn two_hundred_short_sessions_leave_no_process_and_no_descriptor() {
    let _alone = DESCRIPTORS.write().unwrap_or_else(PoisonError::into_inner);
    let leaves = r#"[ -n "$began" ] || { began=1; setsid sleep 1000 >/dev/null 2>&1 & }"#;
    let script = script(leaves, "says x");
    block_on(async {
        let marked = Marked::new("sessions");
        let reads = async |_| {
            let upstream = marked.upstream(&script, |_| {});
            up(&upstream).await;
            upstream.call(call()).await.unwrap();
        };
        short_sessions(&marked, reads).await;
    });
    block_on(async {
        let marked = Marked::new("writes");
        let upstream = marked.upstream(&script, |options| options.spare = 0);
        up(&upstream).await;
        let writes = async |number| {
            let caller = session(number);
            upstream.call(write_of(&caller)).await.unwrap();
            upstream.session_ended(&caller);
        };
        // the instance that lists the tools ends too
        short_sessions(&marked, writes).await;
    });
}

fn session(number: usize) -> Arc<Caller> {
    let caller = Caller::new(Principal::new("ada"));
    Arc::new(caller.with_session(SessionId::new(number.to_string())))
}

#[test]
fn a_new_session_finds_no_lock_of_the_one_that_ended() {
    beside_others(async {
        let marked = Marked::new("locks");
        let folder = tempfile::tempdir().unwrap();
        // held from the only call until a moment after its input has ended
        let lock = folder.path().join("lock");
        let each = format!("trap 'sleep 0.3; rmdir {}' EXIT", lock.display());
        let call = format!("mkdir {} || exit 3; says x", lock.display());
        let script = script(&each, &call);
        let upstream = marked.upstream(&script, |options| options.shutdown_grace = LONG);
        up(&upstream).await;
        for number in 0..4 {
            let caller = session(number);
            upstream.call(write_of(&caller)).await.unwrap();
            upstream.session_ended(&caller);
        }
        upstream.shutdown().await;
    });
}

/// Returns how many descriptors this process has, the one that counts them left out.
fn descriptors() -> usize {
    // a scan of another thread may be open for a moment
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.flatten()
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| !to.starts_with("/proc")))
        .count()
}
