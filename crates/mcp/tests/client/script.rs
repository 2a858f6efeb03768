//! A server at the other end of a pipe, played by the test line by line.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallPlan, Delivery, ErrorKind, Outbound, Profile, ProgressSink, Resolved, SendWatch, ServerId,
    Source, Tool, ToolCall, ToolDefinition, ToolError, ToolOutput, ToolServer, TraceContext,
};
use callward_mcp::client::{CommandSpec, EraChoice, Io, Target, Upstream, UpstreamOptions};
use callward_mcp::wire::{Message, RequestId};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) fn id() -> ServerId {
    ServerId::new("s").unwrap()
}

pub(crate) fn tool_of(definition: &str) -> Arc<Tool> {
    let definition = ToolDefinition::from_json(definition.to_owned()).unwrap();
    let resolved = Resolved::from_single(definition.annotations.clone(), Source::Declared);
    let plan = CallPlan::derive(&resolved, &Profile::standard());
    Arc::new(Tool::new(id().into(), definition, resolved, plan))
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    let definition = json!({"name": name, "inputSchema": {"type": "object"}});
    ToolCall::new(tool_of(&definition.to_string()), arguments.to_owned())
}

pub(crate) fn assert_fails(error: &ToolError, kind: ErrorKind, delivery: Delivery) {
    assert_eq!((error.kind, error.delivery), (kind, delivery), "{error}");
    assert_eq!(error.server.as_ref(), Some(&id()), "{error}");
}

/// What `initialize` and `server/discover` are answered with.
pub(crate) const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"old","version":"1"}}"#;
pub(crate) const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
pub(crate) const DISCOVERED_LISTENING: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}"#;

pub(crate) const RESULT: &str = r#"{"content":[]}"#;
/// How long a test waits for what has to come.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) const LEGACY: fn(&mut UpstreamOptions) = |options| options.era = EraChoice::Legacy;

pub(crate) fn calling(upstream: &Upstream, call: ToolCall) -> Calling {
    tokio::spawn(upstream.call(call))
}

pub(crate) fn listing(upstream: &Upstream) -> JoinHandle<Result<Vec<ToolDefinition>, ToolError>> {
    let upstream = upstream.clone();
    tokio::spawn(async move { upstream.list_tools().await })
}

pub(crate) type Calling = JoinHandle<Result<ToolOutput, ToolError>>;

pub(crate) fn start(target: Target, set: impl FnOnce(&mut UpstreamOptions)) -> Upstream {
    let mut options = UpstreamOptions::default();
    set(&mut options);
    Upstream::start(id(), target, options)
}

/// Starts an upstream of a shell script, spoken to in the legacy way.
pub(crate) fn shell(script: &str, set: impl FnOnce(&mut UpstreamOptions)) -> Upstream {
    let command = CommandSpec::new("/bin/sh").with_args(["-c", script]);
    start(Target::Command(command), |options| {
        options.era = EraChoice::Legacy;
        set(options);
    })
}

/// A shell script that answers `initialize`, then goes on as given.
pub(crate) fn greeting(then: &str) -> String {
    format!(
        "read hello; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{INITIALIZED}}}'; read ready; {then}"
    )
}

pub(crate) async fn legacy() -> (Upstream, Peer, Script) {
    greeted(1 << 16, |_| {}).await
}

/// An upstream over in-memory pipes that hold `buffer` bytes, and its legacy server.
pub(crate) async fn greeted(
    buffer: usize,
    set: impl FnOnce(&mut UpstreamOptions),
) -> (Upstream, Peer, Script) {
    greeted_with(INITIALIZED, buffer, set).await
}

/// An upstream over in-memory pipes, whose server answers the greeting so.
pub(crate) async fn greeted_with(
    greeting: &str,
    buffer: usize,
    set: impl FnOnce(&mut UpstreamOptions),
) -> (Upstream, Peer, Script) {
    let (upstream, mut script) = scripted(buffer, set);
    let mut peer = script.accept().await;
    if greeting.contains("protocolVersion") {
        peer.initialize_with(greeting).await;
    } else {
        peer.refuse_initialize().await;
        let probe = peer.asked("server/discover").await;
        peer.reply(&probe, greeting).await;
    }
    upstream.ready(LONG).await.unwrap();
    (upstream, peer, script)
}

pub(crate) struct Script(mpsc::UnboundedReceiver<DuplexStream>);

/// Starts an upstream over in-memory pipes that hold `buffer` bytes.
pub(crate) fn scripted(
    buffer: usize,
    set: impl FnOnce(&mut UpstreamOptions),
) -> (Upstream, Script) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let io = Io::new(move || {
        let sender = sender.clone();
        async move {
            let (ours, theirs) = tokio::io::duplex(buffer);
            sender
                .send(theirs)
                .map_err(|_| std::io::Error::other("the script is over"))?;
            let (reader, writer) = tokio::io::split(ours);
            Ok((Box::new(reader) as _, Box::new(writer) as _))
        }
    });
    (start(Target::Io(io), set), Script(receiver))
}

impl Script {
    pub(crate) async fn accept(&mut self) -> Peer {
        Peer(self.0.recv().await.expect("a connection"))
    }
}

pub(crate) struct Peer(pub(crate) DuplexStream);

/// A request as the server sees it. `params` is the raw text.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: RequestId,
    pub(crate) params: String,
}

impl Asked {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.params).unwrap()
    }
}

impl Peer {
    /// Returns the next line; nothing if the client has closed the pipe.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            match self.0.read_u8().await.ok()? {
                b'\n' => return Some(String::from_utf8(line).unwrap()),
                byte => line.push(byte),
            }
        }
    }

    pub(crate) async fn message(&mut self) -> Option<Message> {
        let line = self.next_line().await?;
        Some(Message::parse(&line.into()).unwrap())
    }

    /// Returns the next request, which has to be of this method.
    pub(crate) async fn asked(&mut self, expected: &str) -> Asked {
        match self.message().await {
            Some(Message::Request { id, method, params }) if method == expected => Asked {
                id,
                params: String::from_utf8(params.unwrap_or_default().to_vec()).unwrap(),
            },
            other => panic!("expected {expected}, got {other:?}"),
        }
    }

    /// Returns the params of the next notification, which has to be of this method.
    pub(crate) async fn notified(&mut self, expected: &str) -> Value {
        match self.message().await {
            Some(Message::Notification { method, params }) if method == expected => {
                params.map_or(Value::Null, |raw| serde_json::from_slice(&raw).unwrap())
            }
            other => panic!("expected {expected}, got {other:?}"),
        }
    }

    pub(crate) async fn line(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
        self.0.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn reply(&mut self, to: &Asked, result: &str) {
        self.answer(to, &format!(r#""result":{result}"#)).await;
    }

    pub(crate) async fn answer(&mut self, to: &Asked, outcome: &str) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, to.id);
        self.line(&message.replace('\n', " ")).await;
    }

    pub(crate) async fn serve(&mut self, upstream: &Upstream, call: ToolCall) -> Asked {
        let running = calling(upstream, call);
        let asked = self.asked("tools/call").await;
        self.reply(&asked, RESULT).await;
        running.await.unwrap().unwrap();
        asked
    }

    pub(crate) async fn refuse(&mut self, to: &Asked, code: i64) {
        let error = format!(r#""error":{{"code":{code},"message":"no","data":[1 ]}}"#);
        self.answer(to, &error).await;
    }

    /// Refuses `initialize`, as a server does that speaks 2026-07-28 only.
    pub(crate) async fn refuse_initialize(&mut self) {
        let hello = self.asked("initialize").await;
        self.refuse(&hello, -32601).await;
    }

    pub(crate) async fn initialize(&mut self) {
        self.initialize_with(INITIALIZED).await;
    }

    async fn initialize_with(&mut self, greeting: &str) {
        let hello = self.asked("initialize").await;
        self.reply(&hello, greeting).await;
        self.notified("notifications/initialized").await;
    }
}

pub(crate) fn progress(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
}

/// Keeps what is reported of requests, and answers with a context of its own if it has one.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    pub(crate) seen: Mutex<Vec<String>>,
    pub(crate) own: Option<TraceContext>,
}

impl SendWatch for Watching {
    fn sends(&self, request: &Outbound<'_>) -> Option<TraceContext> {
        self.seen.lock().push(format!(
            "{} {:?} {:?} {:?} {:?} {:?}",
            request.transport.as_str(),
            request.protocol_version,
            request.session,
            request.address,
            request.http_version,
            request.port.is_some_and(|port| port > 0),
        ));
        self.own.clone()
    }
}

#[derive(Default)]
pub(crate) struct Reports(pub(crate) Mutex<Vec<String>>);

impl ProgressSink for Reports {
    fn report(&self, params: &[u8]) {
        let report = String::from_utf8(params.to_vec()).unwrap();
        self.0.lock().push(report);
    }
}
