//! Servers and clients that do what none should: a table of modes, each with its promise.
//!
//! After every row a neighbour's call works, the gateway has grown by a bounded number of bytes,
//! has no more descriptors and processes than a bound, and a call that is not safe to retry has run
//! at most once. Bounds are in bytes and numbers, never in time: a limit ends what hangs.
//!
//! Modes that need a scene of their own are in `connections.rs`, `hosts.rs` and `reports.rs`. What
//! is read of each byte of an answer is in `callward-mcp`, `tests/client/boundary`.
#![cfg(target_os = "linux")]

mod answers;
mod clients;
mod held;
mod stdio;

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use callward::ToolDefinition;
use callward_chaos::Ledger;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Peer, Reply};
use serde_json::{Value, json};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, descriptors, said, until};

/// By how many bytes the gateway may grow in one row. The longest message it takes is 1 MiB.
const GROWTH: u64 = 32 << 20;
/// How many descriptors one row may add while it runs, and how many may stay: connections that are
/// kept.
const DESCRIPTORS: usize = 32;
const KEPT: usize = 8;

const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n";
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Both tools succeed.
const OK: [&str; 2] = ["ok", "ok"];
/// No one knows whether it ran.
const LOST: [&str; 2] = ["connection_lost", "outcome_unknown"];

/// Nothing that spares a failing server; each call is sent.
const CONFIG: &str = r#"
[retry]
budget = 1.0
max_pause = "1ms"

[loop_guard]
enabled = false

[breaker]
failures = 1000000

[breaker.server]
failures = 1000000

[router.ping]
enabled = false

[cache]
enabled = false
"#;

/// Two tools, one that reads and one that is not safe to retry.
fn tools() -> [Value; 2] {
    [tool("read", true), tool("pay", false)]
}

/// A good result.
fn result(id: &str) -> String {
    let content = json!([{"type": "text", "text": "did it"}]);
    let result = json!({"resultType": "complete", "content": content});
    callward_testkit::hostile::result(id, &result)
}

fn event(message: &str) -> String {
    format!("data: {message}\n\n")
}

/// A head without a length, and a body.
fn open(headers: &str, body: &str) -> Reply {
    Reply::bytes(format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}"))
}

fn json(body: &str) -> Reply {
    Reply::http(200, JSON, body)
}

/// What the gateway has taken of the system.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Bytes in memory.
    resident: u64,
    /// The most there ever were.
    peak: u64,
    /// Open files, sockets and pipes.
    descriptors: usize,
    /// The process itself, and all that descend from it.
    processes: usize,
}

impl Usage {
    fn of(gateway: &Gateway) -> Self {
        let pid = gateway.child.id().unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            kib.unwrap().parse::<u64>().unwrap() * 1024
        };
        Self {
            resident: bytes("VmRSS:"),
            peak: bytes("VmHWM:"),
            descriptors: descriptors(gateway),
            processes: family(pid),
        }
    }
}

fn family(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let count = |text: String| -> usize {
        let pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.map(family).sum()
    };
    1 + children.map(count).sum::<usize>()
}

/// A gateway between a hostile server and a good one.
struct Scene {
    gateway: Gateway,
    next: AtomicU64,
    start: Usage,
    /// What rows did not keep: reported together at the end.
    broken: Mutex<Vec<String>>,
}

impl Scene {
    /// Starts a gateway with such lines for the hostile server, whose messages may be so long, and
    /// with such an attempt timeout.
    async fn new(server: &str, timeout: &str, max_message: &str) -> Self {
        let good = Script {
            call: r#"says here"#,
            ..Script::counting(&json!([tool("ask", false)]))
        };
        let config = format!(
            "{server}instances = \"shared\"\nmax_message = {max_message:?}\n\n{}\n{CONFIG}\n\
             [limits]\nattempt_timeout = {timeout:?}\n",
            good.server("good")
        );
        let gateway = Gateway::configured(&config).await;
        let mut scene = Self {
            start: Usage::of(&gateway),
            gateway,
            next: AtomicU64::new(1),
            broken: Mutex::default(),
        };
        scene.neighbour("the start").await;
        scene.start = Usage::of(&scene.gateway);
        scene
    }

    /// Calls the good server.
    async fn neighbour(&self, row: &str) {
        let answer = self.gateway.mcp("good__ask", json!({})).await;
        assert_eq!(said(&answer), "here", "{row}");
    }

    /// Calls a tool of the hostile server: returns which call it was, and the kind of answer.
    async fn call(&self, tool: &str) -> (u64, String) {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let tool = format!("bad__{tool}");
        let answer = self.gateway.mcp(&tool, json!({"call": call})).await;
        (call, kind(&answer))
    }

    /// Notes what a row did not keep.
    fn holds(&self, row: &str, kept: bool, found: &dyn std::fmt::Debug) {
        if !kept {
            let mut broken = self.broken.lock().unwrap();
            broken.push(format!("{row}: {found:?}"));
        }
    }

    /// Holds the bounds in the middle of a row, and calls the good server.
    async fn bounded(&self, row: &str) {
        let (start, now) = (&self.start, Usage::of(&self.gateway));
        // the server itself may be starting again
        let kept = now.peak <= start.resident + GROWTH
            && now.descriptors <= start.descriptors + DESCRIPTORS
            && now.processes <= start.processes + 2;
        self.holds(row, kept, &(start, now));
        self.neighbour(row).await;
    }

    /// Waits until what all rows took is given back, and tells what they did not keep.
    async fn ends(&self, row: &str) {
        let start = &self.start;
        until(&format!("{row}: descriptors and processes"), || async {
            self.neighbour(row).await;
            let now = Usage::of(&self.gateway);
            (now.descriptors <= start.descriptors + KEPT && now.processes <= start.processes)
                .then_some(())
        })
        .await;
        let broken = self.broken.lock().unwrap();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }
}

/// A hostile server on a socket, and the gateway in front of it.
struct Http {
    scene: Scene,
    peer: Peer,
    ledger: Ledger,
}

impl Http {
    async fn new(era: Era, timeout: &str, max_message: &str) -> Self {
        let ledger = Ledger::new();
        let tools = tools().map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap());
        let peer = Peer::start(era, &tools, ledger.clone()).await.unwrap();
        let server = format!("[servers.bad]\nurl = {:?}\n", peer.url());
        Self {
            scene: Scene::new(&server, timeout, max_message).await,
            peer,
            ledger,
        }
    }

    /// Calls both tools while the server plays this, and holds the promises: the kinds of answer,
    /// the neighbour's call, the bounds, and that what is not safe to retry is sent once.
    async fn row(
        &self,
        row: &str,
        expected: [&str; 2],
        plays: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) {
        let [read, paid] = expected;
        self.row_of_any(row, [&[read], &[paid]], plays).await;
    }

    /// As [`row`](Self::row), where each answer is one of several kinds.
    async fn row_of_any(
        &self,
        row: &str,
        expected: [&[&str]; 2],
        plays: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) {
        self.peer.plays(plays);
        let (_, read) = self.scene.call("read").await;
        let (pay, paid) = self.scene.call("pay").await;
        let seen = self.ledger.of(pay).seen;
        let [reads, pays] = expected;
        let kept = reads.contains(&&*read) && pays.contains(&&*paid) && seen == 1;
        self.scene.holds(row, kept, &(read, paid, seen));
        self.scene.bounded(row).await;
    }
}

/// Names what a caller got, in one word.
fn kind(answer: &Value) -> String {
    let error = &answer["error"];
    match (&error["data"]["kind"], &answer["result"]) {
        (Value::String(kind), _) => kind.clone(),
        (_, Value::Object(result)) if result.get("isError") == Some(&json!(true)) => {
            "is_error".to_owned()
        }
        (_, Value::Object(_)) => "ok".to_owned(),
        _ => format!("code {}", error["code"]),
    }
}
