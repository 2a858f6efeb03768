//! What is left of stdio servers, and of all they have started, when they end: nothing. Their
//! processes are found by a variable of their environment.
#![cfg(target_os = "linux")]

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::scripted::{Script, tool};
use crate::support::{Gateway, Legacy, callward, descriptors, file, said, signal, until, within};

/// The variable that all processes of a test inherit.
const MARK: &str = "TEST_MARK";

/// Processes that are found by what `MARK` says in them.
struct Marked(String);

impl Marked {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{next}", std::process::id()))
    }

    /// Returns a config with one server, whose processes are marked; more lines of its section
    /// follow.
    fn config(&self, script: &Script<'_>, more: &str) -> String {
        let server = script.server("s");
        let env = format!("env = {{ {MARK} = \"{}\" }}", self.0);
        format!("{server}era = \"legacy\"\n{env}\n{more}\n")
    }

    /// Returns the marked processes; one that has ended and is not waited for has no environment
    /// any more.
    fn all(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}\0", self.0);
        let all = std::fs::read_dir("/proc").unwrap();
        all.flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|process| has(*process, "environ", &mark))
            .collect()
    }

    /// Waits until their number is one of these.
    async fn are(&self, what: &str, is_it: impl Fn(usize) -> bool) {
        within(what, async {
            while !is_it(self.all().len()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    async fn are_gone(&self) {
        self.are("none is left", |count| count == 0).await;
    }

    fn supervisor(&self) -> u32 {
        let mut all = self.all();
        all.retain(|process| has(*process, "cmdline", "__supervise"));
        let [supervisor] = all[..] else {
            panic!("one supervisor: {all:?}");
        };
        supervisor
    }
}

/// Returns `true` if a file of a process has this text; one that has ended has none.
fn has(process: u32, file: &str, text: &str) -> bool {
    let bytes = std::fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
    let mut windows = bytes.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

/// Returns the process group of a process.
fn group(process: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_ascii_whitespace().nth(2).unwrap().to_owned()
}

/// Starts three processes that are hard to end, once: one ignores SIGTERM, one has left its
/// session, and one has lost its parent, left its session and ignores SIGTERM. The first two keep
/// the server's output open.
const STUBBORN: &str = r#"[ -n "$began" ] || { began=1;
    (trap "" TERM; exec sleep 1000) &
    setsid sleep 1001 &
    (trap "" TERM HUP INT; setsid sleep 1002 >/dev/null 2>&1 &); }"#;

/// A server that runs the first before it reads anything and before each request, and the second at
/// each call. It keeps state for its clients.
fn script<'a>(each: &'a str, call: &'a str) -> Script<'a> {
    Script {
        each,
        call,
        ..Script::counting(&json!([tool("x", false)]))
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_gateway() {
    // killed, terminated, or left by a client that closes the pipe
    for (command, end) in [
        ("serve", "-KILL"),
        ("serve", "-TERM"),
        ("run", "-KILL"),
        ("run", ""),
    ] {
        let marked = Marked::new();
        let script = script(STUBBORN, "says x");
        let config = file(marked.config(&script, ""));
        let mut gateway = match command {
            "serve" => callward(&["serve", "--http", "127.0.0.1:0", "--config"]),
            _ => callward(&["run", "--"]),
        };
        match command {
            "serve" => gateway.arg(config.path()),
            _ => gateway.args(script.command()).env(MARK, &marked.0),
        };
        gateway.stdin(Stdio::piped());
        gateway.stdout(Stdio::null()).stderr(Stdio::null());
        let mut gateway = gateway.spawn().unwrap();
        let pid = gateway.id().unwrap();
        // supervisor, shell, and three that are hard to end
        marked.are("all run", |count| count >= 5).await;
        // Ctrl-C reaches the gateway's group, and none of these
        assert_ne!(group(marked.supervisor()), group(pid));
        match end {
            "" => drop(gateway.stdin.take()),
            name => signal(name, pid).await,
        }
        within("the end", gateway.wait()).await.unwrap();
        marked.are_gone().await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_server_that_crashes_again_and_again() {
    let marked = Marked::new();
    let dies = format!("{STUBBORN}\necho last words >&2; exit 3");
    let config = marked.config(&script("", &dies), "instances = \"shared\"");
    let gateway = Gateway::configured(&config).await;
    for _ in 0..3 {
        until("a crash", || async {
            let answer = gateway.call("s__x", json!({})).await.to_string();
            answer.contains("exit status: 3").then_some(())
        })
        .await;
    }
    let only = "only a supervisor and a shell run";
    marked.are(only, |count| count == 2).await;
    drop(gateway);
    marked.are_gone().await;
}

#[tokio::test]
async fn a_server_outlives_its_supervisor_only_until_its_gateway_ends() {
    let marked = Marked::new();
    let config = marked.config(&script("", "says x"), "instances = \"shared\"");
    let gateway = Gateway::configured(&config).await;
    signal("-KILL", marked.supervisor()).await;
    let gone = "the supervisor is gone";
    marked.are(gone, |count| count == 1).await;
    let answer = gateway.call("s__x", json!({})).await;
    assert_eq!(said(&answer), "x");
    gateway.stopped().await;
    marked.are_gone().await;
}

/// Makes short sessions, one after the other, each with a call that may have changed state.
async fn short_sessions(gateway: &Gateway, count: usize) {
    for _ in 0..count {
        let client = Legacy::open(&gateway.url).await;
        assert_eq!(client.call("s__x", json!({})).await, "x");
        client.end().await;
    }
}

#[tokio::test]
async fn two_hundred_short_sessions_leave_no_process_and_no_descriptor() {
    let marked = Marked::new();
    let leaves = r#"[ -n "$began" ] || { began=1; setsid sleep 1000 >/dev/null 2>&1 & }"#;
    // the instance that lists the tools ends too, once it is idle
    let config = marked.config(&script(leaves, "says x"), "spare = 0\nidle = \"1s\"");
    let gateway = Gateway::configured(&config).await;
    // the runtime makes some descriptors of its own at the first child
    short_sessions(&gateway, 1).await;
    marked.are_gone().await;
    let before = descriptors(&gateway);
    short_sessions(&gateway, 200).await;
    marked.are_gone().await;
    // some are of connections that are kept
    until("no descriptor is left", || async {
        assert_eq!(gateway.get("/readyz").await.0, 200);
        (descriptors(&gateway) <= before + 8).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_new_session_finds_no_lock_of_the_one_that_ended() {
    let folder = tempfile::tempdir().unwrap();
    // held from the only call until a moment after its input has ended
    let lock = folder.path().join("lock");
    let each = format!("trap 'sleep 0.1; rmdir {}' EXIT", lock.display());
    let call = format!("mkdir {} || exit 3; says x", lock.display());
    let config = Marked::new().config(&script(&each, &call), "");
    let gateway = Gateway::configured(&config).await;
    short_sessions(&gateway, 4).await;
}
