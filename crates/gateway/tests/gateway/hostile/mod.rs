//! Servers and clients that do what none should: a table of modes, each with its promise.
//!
//! After every row a neighbour's call works, the gateway has grown by a bounded number of bytes,
//! has no more descriptors and processes than a bound, and a call that is not safe to retry has run
//! at most once. Bounds are in bytes and numbers, never in time: a limit ends what hangs.
//!
//! Modes that need a scene of their own are beside this table: `flood.rs` (requests without end),
//! `connections.rs` (clients that hold connections, bodies, answers and sessions), `hosts.rs`,
//! `forged.rs`, and in `callward-mcp` `tests/client/http_streams.rs`,
//! `tests/server/http_refusals.rs` and `tests/server/http_status.rs`.
#![cfg(target_os = "linux")]

mod answers;
mod clients;
mod held;
mod http;
mod statuses;
mod stdio;
mod usage;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use callward::ToolDefinition;
use callward_chaos::Ledger;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Peer, Reply};
use serde_json::{Value, json};

use self::usage::Usage;
use crate::scripted::Script;
use crate::support::{Gateway, until};

/// By how many bytes the gateway may grow in one row. The longest message it takes is 1 MiB.
const GROWTH: u64 = 32 << 20;
/// How many descriptors one row may add while it runs, and how many may stay: connections that are
/// kept.
const DESCRIPTORS: usize = 32;
const KEPT: usize = 8;

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
    [("read", true), ("pay", false)].map(|(name, reads)| {
        json!({
            "name": name, "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": reads, "destructiveHint": !reads},
        })
    })
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
    /// Starts a gateway with such lines for the hostile server, and with such an attempt timeout.
    async fn new(server: &str, timeout: &str) -> Self {
        Self::sized(server, timeout, "1MiB").await
    }

    /// As [`new`](Self::new), where the hostile server's messages may be so long.
    async fn sized(server: &str, timeout: &str, max_message: &str) -> Self {
        let good = json!([{"name": "ask", "inputSchema": {"type": "object"}}]);
        let good = Script {
            call: r#"says here"#,
            ..Script::counting(&good)
        };
        let config = format!(
            "{server}instances = \"shared\"\nmax_message = {max_message:?}\n\n{}\n{CONFIG}\n\
             [limits]\nattempt_timeout = {timeout:?}\n",
            good.server("good")
        );
        let gateway = Gateway::configured(&config).await;
        let pid = gateway.child.id().unwrap();
        let scene = Self {
            gateway,
            next: AtomicU64::new(1),
            start: Usage::of(pid),
            broken: Mutex::default(),
        };
        scene.neighbour("the start").await;
        Self {
            start: scene.usage(),
            ..scene
        }
    }

    fn usage(&self) -> Usage {
        Usage::of(self.gateway.child.id().unwrap())
    }

    /// Calls the good server.
    async fn neighbour(&self, row: &str) {
        let answer = self.gateway.mcp("good__ask", json!({})).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "here", "{row}: the neighbour got {answer}");
    }

    /// Calls a tool of the hostile server: returns which call it was, and the kind of answer.
    async fn call(&self, tool: &str) -> (u64, String) {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self
            .gateway
            .mcp(&format!("bad__{tool}"), json!({"call": call}))
            .await;
        (call, kind(&answer))
    }

    /// Notes what a row did not keep.
    fn holds(&self, row: &str, kept: bool, found: &dyn std::fmt::Debug) {
        if !kept {
            self.broken
                .lock()
                .unwrap()
                .push(format!("{row}: {found:?}"));
        }
    }

    /// Holds the bounds, in the middle of a row.
    fn bounded(&self, row: &str) {
        let (start, now) = (&self.start, self.usage());
        // the server itself may be starting again
        let kept = now.peak <= start.resident + GROWTH
            && now.descriptors <= start.descriptors + DESCRIPTORS
            && now.processes <= start.processes + 2;
        self.holds(row, kept, &(start, now));
    }

    /// Waits until what all rows took is given back, and tells what they did not keep.
    async fn ends(&self, row: &str) {
        let start = &self.start;
        until(&format!("{row}: descriptors and processes"), || async {
            self.neighbour(row).await;
            let now = self.usage();
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
    async fn new(era: Era, timeout: &str) -> Self {
        Self::sized(era, timeout, "1MiB").await
    }

    async fn sized(era: Era, timeout: &str, max_message: &str) -> Self {
        let ledger = Ledger::new();
        let tools = tools().map(|tool| ToolDefinition::from_json(tool.to_string()).unwrap());
        let peer = Peer::start(era, &tools, ledger.clone()).await.unwrap();
        let server = format!("[servers.bad]\nurl = {:?}\n", peer.url());
        Self {
            scene: Scene::sized(&server, timeout, max_message).await,
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
        self.peer.plays(plays);
        let (_, read) = self.scene.call("read").await;
        let (pay, paid) = self.scene.call("pay").await;
        let seen = self.ledger.of(pay).seen;
        let found = (read.as_str(), paid.as_str(), seen);
        self.scene
            .holds(row, found == (expected[0], expected[1], 1), &found);
        self.scene.bounded(row);
        self.scene.neighbour(row).await;
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
