//! One client: it makes random calls, and holds each answer to what the servers ran.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wire;
use crate::world::{KEYS, World};

const MODERN: &str = "2026-07-28";

/// What clients found, together.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) world: Arc<World>,
    next: AtomicU64,
    pub(crate) calls: AtomicU64,
    pub(crate) looks: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) hung_up: AtomicU64,
    /// What was promised and not kept.
    pub(crate) violations: Mutex<Vec<String>>,
}

impl Found {
    fn violated(&self, what: String) {
        eprintln!("violation: {what}");
        self.violations.lock().push(what);
    }
}

/// A client over HTTP, of one of the two eras.
pub(crate) struct Client {
    address: String,
    number: u64,
    is_modern: bool,
    found: Arc<Found>,
    stream: Option<BufReader<TcpStream>>,
    session: Option<String>,
    id: u64,
    notes: u64,
}

impl Client {
    pub(crate) fn new(address: String, number: u64, is_modern: bool, found: Arc<Found>) -> Self {
        Self {
            address,
            number,
            is_modern,
            found,
            stream: None,
            session: None,
            id: 0,
            notes: 0,
        }
    }

    /// Makes one random call.
    pub(crate) async fn step(&mut self) {
        self.found.calls.fetch_add(1, Ordering::Relaxed);
        let done = match fastrand::u32(..100) {
            0..85 => self.look().await,
            85..91 => self.put(None).await,
            91..93 => {
                self.put(Some(Duration::from_millis(fastrand::u64(..20))))
                    .await
            }
            93..94 => self.list().await,
            _ if self.is_modern => self.look().await,
            _ => self.remember().await,
        };
        if done.is_err() {
            // the gateway may close a connection; what is lost is the call, not the client
            self.found.failed.fetch_add(1, Ordering::Relaxed);
            self.stream = None;
        }
    }

    /// Ends the session, and with it the process of its notes.
    pub(crate) async fn leave(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let head = format!(
            "DELETE /mcp HTTP/1.1\r\nhost: {}\r\nmcp-session-id: {session}\r\n",
            self.address
        );
        if let Ok(stream) = TcpStream::connect(&self.address).await {
            let mut stream = BufReader::new(stream);
            if wire::write(&mut stream, &head, "").await.is_ok() {
                let _answered = wire::read(&mut stream).await;
            }
        }
    }

    async fn look(&mut self) -> io::Result<()> {
        self.found.looks.fetch_add(1, Ordering::Relaxed);
        let key = fastrand::u64(..KEYS);
        let moment = self.found.world.now(key);
        let answer = self
            .call("registers__look", json!({"key": key}), None)
            .await?;
        let Some(text) = text(&answer) else {
            self.found.failed.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let value = text.strip_prefix(&format!("look {key} "));
        match value.and_then(|value| value.parse().ok()) {
            None => self
                .found
                .violated(format!("a look was answered with {text:?}")),
            Some(value) if !self.found.world.held_since(key, moment, value) => {
                self.found
                    .violated(format!("register {key} did not hold {value} any more"));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Writes a register; the client hangs up after a time, if one is given.
    async fn put(&mut self, leaves: Option<Duration>) -> io::Result<()> {
        let tool = ["put", "swap"][fastrand::usize(..2)];
        let key = fastrand::u64(..KEYS);
        let number = 1 + self.found.next.fetch_add(1, Ordering::Relaxed);
        let arguments = json!({"key": key, "number": number});
        let answer = self
            .call(&format!("registers__{tool}"), arguments, leaves)
            .await?;
        let applied = self.found.world.applied(number);
        match text(&answer) {
            Some(text) if text != format!("{tool} {key} {number}") || applied != 1 => {
                self.found.violated(format!(
                    "write {number} ran {applied} times, and {text:?} came back"
                ));
            }
            Some(_) => {}
            None => {
                self.found.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Gives the session's own process a note, and asks for it.
    async fn remember(&mut self) -> io::Result<()> {
        self.notes += 1;
        let note = format!("{} {}", self.number, self.notes);
        let session = self.session.clone();
        let kept = self
            .call("notes__keep", json!({"note": note}), None)
            .await?;
        if text(&kept).is_none() {
            return Ok(());
        }
        let recalled = self.call("notes__recall", json!({}), None).await?;
        // a process that was killed in between knows nothing any more
        if let Some(recalled) = text(&recalled)
            && recalled != note
            && recalled != "nothing"
            && session == self.session
        {
            self.found
                .violated(format!("{note:?} was kept, and {recalled:?} recalled"));
        }
        Ok(())
    }

    /// Lists the tools: each has the name it always had.
    async fn list(&mut self) -> io::Result<()> {
        let answer = self.request("tools/list", json!({}), None).await?;
        let tools = answer["result"]["tools"].as_array();
        let mut names: Vec<_> = tools
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        names.sort_unstable();
        let all = [
            "notes__keep",
            "notes__recall",
            "registers__look",
            "registers__put",
            "registers__swap",
        ];
        if names != all {
            self.found.violated(format!("the tools are {names:?}"));
        }
        Ok(())
    }

    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Value> {
        self.request(
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
            leaves,
        )
        .await
    }

    async fn request(
        &mut self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Value> {
        if !self.is_modern && self.session.is_none() {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "soak", "version": "1"}});
            self.send("initialize", params, None).await?;
        }
        self.send(method, params, leaves).await
    }

    async fn send(
        &mut self,
        method: &str,
        mut params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Value> {
        self.id += 1;
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n",
            self.address
        );
        if self.is_modern {
            head += &format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n");
            if let Some(name) = params["name"].as_str() {
                head += &format!("mcp-name: {name}\r\n");
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        } else if let Some(session) = &self.session {
            head += &format!("mcp-session-id: {session}\r\n");
        }
        let body = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(&self.address).await?),
        };
        wire::write(&mut stream, &head, &body.to_string()).await?;
        let read = wire::read(&mut stream);
        let heard = match leaves {
            None => read.await?,
            Some(after) => match timeout(after, read).await {
                Ok(heard) => heard?,
                Err(_) => {
                    self.found.hung_up.fetch_add(1, Ordering::Relaxed);
                    return Ok(Value::Null);
                }
            },
        };
        let heard = heard.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.stream = Some(stream);
        if heard.session.is_some() {
            self.session = heard.session;
        }
        if heard.first.contains(" 404 ") {
            // the session has ended: a client opens another
            self.session = None;
        }
        Ok(serde_json::from_slice(&heard.body).unwrap_or_default())
    }
}

/// Returns the text of a result; nothing for an error.
fn text(answer: &Value) -> Option<&str> {
    match answer["result"]["isError"] == true {
        true => None,
        false => answer["result"]["content"][0]["text"].as_str(),
    }
}
