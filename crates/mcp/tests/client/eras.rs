//! HTTP servers of both eras: state is kept in the sessions of the earlier one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, Instances, Principal, ServerEvent, Tool, ToolCall, ToolServer,
};
use callward_mcp::client::{EraChoice, Upstream};
use callward_mcp::wire::Era;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::instances::caller;
use crate::script::{LONG, assert_fails, tool_of};
use crate::script_http::{Exchange, Server, upstream_at};

/// What a server does with `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initialize {
    Opens,
    WithoutId,
    Refused,
    Busy,
    Silent,
}

#[derive(Debug)]
struct State {
    initialize: Initialize,
    /// The revisions of a discovery; none is a server that knows only `initialize`.
    versions: &'static str,
    /// How often each method was asked for.
    asked: HashMap<String, u32>,
    /// The calls of each session; those without one share an entry.
    calls: HashMap<String, u32>,
    unanswered: Vec<Exchange>,
}

/// A server with a counter for each session. A request of 2026-07-28 is always the first one.
/// Dropped, it is gone.
struct Counter {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    _serving: JoinSet<()>,
}

const MODERN: &str = r#"["2026-07-28"]"#;
const BOTH: &str = r#"["2025-11-25","2026-07-28"]"#;

impl Counter {
    async fn start(versions: &'static str, initialize: Initialize) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), versions, initialize).await
    }

    async fn start_at(address: SocketAddr, versions: &'static str, initialize: Initialize) -> Self {
        let mut server = Server::start_at(address).await;
        let address = server.address;
        let state = Arc::new(Mutex::new(State {
            initialize,
            versions,
            asked: HashMap::new(),
            calls: HashMap::new(),
            unanswered: Vec::new(),
        }));
        let shared = state.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            loop {
                answer(&shared, server.next().await).await;
            }
        });
        Self {
            state,
            address,
            _serving: serving,
        }
    }

    async fn upstream(&self) -> Upstream {
        let upstream = upstream_at(self.address, |_| {});
        upstream.ready(LONG).await.unwrap();
        upstream
    }

    fn set(&self, initialize: Initialize) {
        self.state.lock().initialize = initialize;
    }

    fn asked(&self, method: &str) -> u32 {
        self.state.lock().asked.get(method).copied().unwrap_or(0)
    }

    /// Waits until a method was asked for so often.
    async fn until_asked(&self, method: &str, times: u32) {
        while self.asked(method) < times {
            tokio::task::yield_now().await;
        }
    }
}

async fn answer(state: &Mutex<State>, asked: Exchange) {
    let method = match asked.json()["method"].as_str() {
        Some(method) => method.to_owned(),
        None => asked.method.clone(),
    };
    let session = asked.headers.get("mcp-session-id").cloned();
    let (initialize, versions, opened) = {
        let mut state = state.lock();
        let asked = state.asked.entry(method.clone()).or_default();
        *asked += 1;
        let opened = *asked;
        (state.initialize, state.versions, opened)
    };
    match method.as_str() {
        "server/discover" if versions.is_empty() => asked.refuse(400, -32000).await,
        "server/discover" => {
            let result = format!(
                r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{"tools":{{}}}}}}"#
            );
            asked.result(&result).await;
        }
        "initialize" => {
            let id = match initialize {
                Initialize::Opens => format!("mcp-session-id: s{opened}\r\n"),
                Initialize::WithoutId => String::new(),
                Initialize::Refused => return asked.refuse(400, -32601).await,
                Initialize::Busy => return asked.answer(503, "", "").await,
                Initialize::Silent => return state.lock().unanswered.push(asked),
            };
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}"#,
                asked.id()
            );
            let headers = format!("content-type: application/json\r\n{id}");
            asked.answer(200, &headers, &body).await;
        }
        "tools/call" => {
            let is_modern = asked.headers["mcp-protocol-version"] == "2026-07-28";
            let run = {
                let mut state = state.lock();
                let calls = &mut state.calls;
                let run = calls.entry(session.unwrap_or_default()).or_default();
                *run += 1;
                if is_modern { 1 } else { *run }
            };
            let result = format!(r#"{{"content":[{{"type":"text","text":"{run}"}}]}}"#);
            asked.result(&result).await;
        }
        "notifications/initialized" | "DELETE" => asked.answer(202, "", "").await,
        "GET" => asked.answer(405, "", "").await,
        other => panic!("unexpected request {other:?}"),
    }
}

/// Calls the counter as a stack does: as the server says whose instance runs it.
fn counting(mode: Instances, caller: &Arc<Caller>) -> ToolCall {
    let mut tool = Tool::clone(&tool_of(
        r#"{"name":"add","inputSchema":{"type":"object"}}"#,
    ));
    tool.instances = mode;
    ToolCall::new(Arc::new(tool), "{}").with_caller(caller.clone())
}

async fn count(upstream: &Upstream, caller: &Arc<Caller>) -> u64 {
    counted(upstream, upstream.instances(), caller).await
}

async fn counted(upstream: &Upstream, mode: Instances, caller: &Arc<Caller>) -> u64 {
    let output = upstream.call(counting(mode, caller)).await.unwrap();
    let result: Value = serde_json::from_slice(output.body()).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    text.parse().unwrap()
}

/// A caller of 2026-07-28.
fn without_session() -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")))
}

#[tokio::test]
async fn each_legacy_session_has_one_at_a_server_of_both_eras() {
    for versions in [BOTH, MODERN] {
        let server = Counter::start(versions, Initialize::Opens).await;
        let upstream = server.upstream().await;
        assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
        let [one, two] = [caller("ada", "1"), caller("ada", "2")];
        for run in 1..=3 {
            assert_eq!(count(&upstream, &one).await, run);
            assert_eq!(count(&upstream, &two).await, run);
            assert_eq!(count(&upstream, &without_session()).await, 1);
        }
        // that which the greeting opened is ended, and each ends with its client's
        server.until_asked("DELETE", 1).await;
        upstream.session_ended(&one);
        server.until_asked("DELETE", 2).await;
        upstream.shutdown().await;
    }
}

#[tokio::test]
async fn an_instance_per_principal_is_a_session_there() {
    let server = Counter::start(BOTH, Initialize::Opens).await;
    // the first call waits until it is known what is there
    let upstream = upstream_at(server.address, |_| {});
    let callers = [caller("ada", "1"), caller("ada", "2"), without_session()];
    for (run, caller) in (1..).zip(&callers) {
        assert_eq!(counted(&upstream, Instances::Principal, caller).await, run);
    }
    let eve = caller("eve", "1");
    assert_eq!(counted(&upstream, Instances::Principal, &eve).await, 1);
}

#[tokio::test]
async fn a_server_that_opens_no_session_is_asked_once_and_shared() {
    use Initialize::{Busy, Opens, Refused, Silent, WithoutId};

    let second = Duration::from_secs(1);
    for (versions, initialize, era, greetings) in [
        (BOTH, Refused, EraChoice::Auto, 1),
        (BOTH, WithoutId, EraChoice::Auto, 1),
        ("", WithoutId, EraChoice::Auto, 1),
        (MODERN, Busy, EraChoice::Auto, 1),
        (MODERN, Silent, EraChoice::Auto, 1),
        // it is not asked at all
        (BOTH, Opens, EraChoice::Modern, 0),
    ] {
        let at = format!("{versions} {initialize:?} {era:?}");
        let server = Counter::start(versions, initialize).await;
        let upstream = upstream_at(server.address, |options| {
            (options.era, options.connect_timeout) = (era, second);
        });
        upstream.ready(LONG).await.unwrap();
        assert_eq!(upstream.instances(), Instances::Shared, "{at}");
        for session in ["1", "2", "3"] {
            let caller = caller("ada", session);
            count(&upstream, &caller).await;
            if !versions.is_empty() {
                // the same where the configuration wants an instance per session
                counted(&upstream, Instances::Session, &caller).await;
            }
        }
        assert_eq!(server.asked("initialize"), greetings, "{at}");
        assert_eq!(server.asked("server/discover"), 1, "{at}");
        assert_eq!(server.asked("DELETE"), 0, "{at}");
    }
}

#[tokio::test]
async fn a_server_that_names_sessions_but_opens_none_fails_those_calls() {
    let server = Counter::start(BOTH, Initialize::Busy).await;
    let upstream = server.upstream().await;
    let ada = caller("ada", "1");
    let error = upstream.call(counting(upstream.instances(), &ada)).await;
    let error = error.unwrap_err();
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert_eq!(error.code(), Some(503));
    // requests without a session do without
    assert_eq!(count(&upstream, &without_session()).await, 1);
    server.set(Initialize::Opens);
    for run in 1..=3 {
        assert_eq!(count(&upstream, &ada).await, run);
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_again() {
    let server = Counter::start(MODERN, Initialize::Refused).await;
    let address = server.address;
    let upstream = server.upstream().await;
    let mut events = upstream.events().unwrap();
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    drop(server);
    let ada = caller("ada", "1");
    upstream
        .call(counting(Instances::Shared, &ada))
        .await
        .unwrap_err();
    assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));
    let server = Counter::start_at(address, BOTH, Initialize::Opens).await;
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    // the tools are listed again, and with them whose instance runs their calls
    assert_eq!(events.next().await, Some(ServerEvent::ToolsChanged));
    for run in 1..=3 {
        assert_eq!(count(&upstream, &ada).await, run);
    }
    assert_eq!(server.asked("server/discover"), 1);
}

#[tokio::test]
async fn a_server_that_opens_sessions_no_more_is_shared() {
    let server = Counter::start(BOTH, Initialize::Opens).await;
    let upstream = upstream_at(server.address, |options| options.spare = 0);
    upstream.ready(LONG).await.unwrap();
    let mode = upstream.instances();
    assert_eq!(counted(&upstream, mode, &caller("ada", "1")).await, 1);
    server.set(Initialize::Refused);
    for _ in 0..2 {
        assert_eq!(counted(&upstream, mode, &caller("ada", "2")).await, 1);
    }
    assert_eq!(upstream.instances(), Instances::Shared);
}
