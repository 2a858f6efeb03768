//! The servers behind the gateway that are reached over HTTP: registers, with faults. Some come and
//! go.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use callward_testkit::hostile::{error, result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::channel::{Era, greeting};
use crate::found::{Found, World};
use crate::http::{self, Message};
use crate::names::kind;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\n";
const FAILED: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\n";
const GONE: &str = "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\n";
const REFUSED: &str = "HTTP/1.1 405 Method Not Allowed\r\n";
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// How an answer begins, and its body; `None` if the connection breaks instead.
type Answer = Option<(String, String)>;

/// One server.
pub(crate) struct Server {
    id: String,
    era: Era,
    /// This many calls of a thousand go wrong.
    faults: u32,
    found: Arc<Found>,
    world: Arc<World>,
    /// The note of each session, where the era has sessions.
    notes: Mutex<HashMap<String, String>>,
    next: AtomicU64,
    /// How many calls run, with those that land after their connection has ended.
    busy: AtomicUsize,
    /// No tool `put` is listed.
    hides: AtomicBool,
    /// Tools are listed whose names are those of other servers' tools.
    imitates: AtomicBool,
    is_down: AtomicBool,
    /// Announces that its tools changed, and lists others.
    changes: bool,
}

impl Server {
    /// Starts a server on a free port; returns its URL as well.
    pub(crate) async fn start(
        id: &str,
        era: Era,
        changes: bool,
        faults: u32,
        found: &Arc<Found>,
    ) -> io::Result<(Arc<Self>, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let server = Arc::new(Self {
            id: id.to_owned(),
            era,
            faults,
            found: found.clone(),
            world: found.world(id),
            notes: Mutex::default(),
            next: AtomicU64::new(1),
            busy: AtomicUsize::new(0),
            hides: AtomicBool::new(false),
            imitates: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            changes,
        });
        tokio::spawn(server.clone().accept(listener));
        Ok((server, address))
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.clone().serve(stream));
            }
        }
    }

    /// Comes or goes, as a whole or with some of its tools.
    pub(crate) fn change(&self) {
        self.is_down
            .store(fastrand::u8(..8) == 0, Ordering::Relaxed);
        self.hides.store(fastrand::bool(), Ordering::Relaxed);
        self.imitates.store(fastrand::bool(), Ordering::Relaxed);
    }

    /// Waits until nothing is left that could write.
    pub(crate) async fn rest(&self) {
        // what is on its way to here arrives first
        sleep(Duration::from_millis(500)).await;
        while self.busy.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Ok(Some(heard)) = http::read(&mut stream).await {
            if self.is_down.load(Ordering::Relaxed) {
                return;
            }
            let Some((head, body)) = self.answer(&heard).await else {
                return;
            };
            if http::write(&mut stream, &head, &body).await.is_err() {
                return;
            }
        }
    }

    async fn answer(self: &Arc<Self>, heard: &Message) -> Answer {
        let session = heard.session.as_deref().unwrap_or_default();
        if heard.first.starts_with("DELETE") {
            self.notes.lock().remove(session);
        }
        if !heard.first.starts_with("POST") {
            return Some((REFUSED.to_owned(), String::new()));
        }
        let request: Value = serde_json::from_slice(&heard.body).unwrap_or_default();
        let Some(id) = request.get("id") else {
            return Some((ACCEPTED.to_owned(), String::new()));
        };
        let method = request["method"].as_str().unwrap_or_default();
        let (first, greeting) = greeting(self.era);
        let is_known = self.era == Era::Modern || self.notes.lock().contains_key(session);
        if method == first {
            let mut head = OK.to_owned();
            if self.era == Era::Legacy {
                let session = self.next.fetch_add(1, Ordering::Relaxed).to_string();
                head += &format!("mcp-session-id: {session}\r\n");
                self.notes.lock().insert(session, "nothing".to_owned());
            }
            return Some((head, result(id, &greeting)));
        }
        match method {
            "tools/list" | "tools/call" | "ping" if !is_known => gone(),
            "tools/call" => {
                let repeated = heard.name.as_deref();
                // what a relay passes on has no headers
                if repeated.is_some() && repeated != request["params"]["name"].as_str() {
                    self.found
                        .violated(format!("{repeated:?} stands above {request}"));
                }
                self.busy.fetch_add(1, Ordering::Relaxed);
                let answer = self.call(id, session, &request["params"]).await;
                self.busy.fetch_sub(1, Ordering::Relaxed);
                answer
            }
            "tools/list" => {
                let list = json!({"resultType": "complete", "tools": self.tools(), "ttlMs": 0,
                    "cacheScope": "private"});
                Some((OK.to_owned(), result(id, &list)))
            }
            "ping" => Some((OK.to_owned(), result(id, &json!({})))),
            _ => Some((OK.to_owned(), error(id, -32601, "failed"))),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let mut names = vec!["look".to_owned(), "swap".to_owned()];
        if !self.hides.load(Ordering::Relaxed) {
            names.push("put".to_owned());
        }
        if self.era == Era::Legacy && !self.changes {
            names.extend(["keep".to_owned(), "recall".to_owned()]);
        }
        if self.changes && self.imitates.load(Ordering::Relaxed) {
            names.extend(["old__look", "new__put", "plain__swap"].map(str::to_owned));
        }
        names.iter().map(|name| tool(&self.id, name)).collect()
    }

    /// Runs a call and answers it, or does what a broken server or network does.
    async fn call(self: &Arc<Self>, id: &Value, session: &str, params: &Value) -> Answer {
        let arguments = &params["arguments"];
        let name = params["name"].as_str().unwrap_or_default();
        let identity = format!("{}.{name}", self.id);
        if arguments["for"] != identity {
            let meant = &arguments["for"];
            self.found
                .violated(format!("{identity} got a call of {meant}"));
        }
        let fault = match fastrand::u32(..1000) < self.faults {
            true => fastrand::u32(..7),
            false => u32::MAX,
        };
        if let "keep" | "recall" = name {
            return match fault {
                0 => None,
                1 => {
                    self.notes.lock().remove(session);
                    gone()
                }
                _ => {
                    let mut notes = self.notes.lock();
                    let note = notes.entry(session.to_owned()).or_default();
                    if name == "keep" {
                        *note = arguments["note"].as_str().unwrap_or_default().to_owned();
                    }
                    Some((OK.to_owned(), text(id, note)))
                }
            };
        }
        match fault {
            // lost before it ran
            0 => return None,
            // lost after it ran
            1 => {
                self.run(name, arguments);
                return None;
            }
            // lost, and it lands within a second
            2 => {
                let (late, name, arguments) = (self.clone(), name.to_owned(), arguments.clone());
                self.busy.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    sleep(Duration::from_millis(fastrand::u64(..900))).await;
                    if kind(&name) != "look" {
                        late.run(&name, &arguments);
                    }
                    late.busy.fetch_sub(1, Ordering::Relaxed);
                });
                return None;
            }
            // failed, before or after it ran
            3 | 6 => {
                if fastrand::bool() {
                    self.run(name, arguments);
                }
                if fault == 3 {
                    return Some((FAILED.to_owned(), "failed".to_owned()));
                }
                self.notes.lock().remove(session);
                return gone();
            }
            // slow on both ways
            4 => sleep(Duration::from_millis(fastrand::u64(..300))).await,
            // an error of JSON-RPC after it ran
            5 => {
                self.run(name, arguments);
                return Some((OK.to_owned(), error(id, -32603, "failed")));
            }
            _ => {}
        }
        let done = text(id, &self.run(name, arguments));
        if fault == 4 {
            sleep(Duration::from_millis(fastrand::u64(..300))).await;
        }
        if self.changes && fastrand::u8(..20) == 0 {
            let body = format!("data: {CHANGED}\n\ndata: {done}\n\n");
            return Some((EVENTS.to_owned(), body));
        }
        Some((OK.to_owned(), done))
    }

    fn run(&self, name: &str, arguments: &Value) -> String {
        let number = |member: &str| arguments[member].as_u64().unwrap_or(0);
        let (key, mut value) = (number("key"), number("number"));
        match kind(name) {
            "look" => value = self.world.read(key),
            _ => self.world.write(key, value),
        }
        format!("{}.{name} {key} {value}", self.id)
    }
}

fn gone() -> Answer {
    Some((GONE.to_owned(), "session not found".to_owned()))
}

/// Describes a tool: what it is said to do is what it does, and no write is safe to repeat.
pub(crate) fn tool(server: &str, name: &str) -> Value {
    let annotations = match kind(name) {
        "look" | "recall" => json!({"readOnlyHint": true}),
        kind => json!({"readOnlyHint": false, "destructiveHint": kind == "swap",
            "idempotentHint": false}),
    };
    json!({"name": name, "description": format!("{server}.{name}"), "annotations": annotations,
        "inputSchema": {"type": "object"}})
}

pub(crate) fn text(id: &Value, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    result(id, &json!({"resultType": "complete", "content": content}))
}
