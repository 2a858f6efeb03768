//! HTTP servers of both eras: state is kept in the sessions of the earlier one.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    Caller, Delivery, ErrorKind, Instances, List, Principal, ServerEvent, Tool, ToolCall,
    ToolServer,
};
use callward_mcp::client::{EraChoice, Upstream};
use callward_mcp::wire::Era;
use futures_util::StreamExt;

use crate::instances::caller;
use crate::script::{DISCOVERED, LONG, RESULT, assert_fails, calling, tool_of};
use crate::script_http::{JSON, Server};

const MODERN: &str = r#"["2026-07-28"]"#;
const BOTH: &str = r#"["2025-11-25","2026-07-28"]"#;

/// A call whose owner is chosen by this mode.
fn owned(mode: Instances, caller: &Arc<Caller>) -> ToolCall {
    let mut tool = Tool::clone(&tool_of(
        r#"{"name":"add","inputSchema":{"type":"object"}}"#,
    ));
    tool.instances = mode;
    ToolCall::new(Arc::new(tool), "{}").with_caller(caller.clone())
}

fn without_session() -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")))
}

/// Answers a discovery with these revisions; one that knows only `initialize` has none.
async fn discover(server: &mut Server, versions: &str) {
    let probe = server.asked("server/discover").await;
    let result = format!(
        r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{"tools":{{}}}}}}"#
    );
    match versions {
        "" => probe.refuse(400, -32000).await,
        _ => probe.result(&result).await,
    }
}

/// Answers `initialize`, with a session of this id if it is not empty.
async fn initialized(server: &mut Server, session: &str) {
    let hello = server.asked("initialize").await;
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        hello.id()
    );
    let id = match session {
        "" => String::new(),
        id => format!("mcp-session-id: {id}\r\n"),
    };
    hello.answer(200, &format!("{JSON}{id}"), &body).await;
}

async fn deleted(server: &mut Server, session: &str) {
    let delete = server.next().await;
    assert_eq!(delete.method, "DELETE", "{delete:?}");
    assert_eq!(delete.headers["mcp-session-id"], session);
    delete.answer(202, "", "").await;
}

/// An upstream of a server of both eras, whose first session was ended after the greeting.
async fn both(versions: &str) -> (Upstream, Server) {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| options.spare = 0);
    discover(&mut server, versions).await;
    initialized(&mut server, "greeting").await;
    deleted(&mut server, "greeting").await;
    upstream.ready(LONG).await.unwrap();
    (upstream, server)
}

async fn session(server: &mut Server, upstream: &Upstream, call: ToolCall) -> Option<String> {
    let asked = server.serve(upstream, call).await;
    asked.headers.get("mcp-session-id").cloned()
}

/// Makes the first call of an owner, which opens this session.
async fn opens(server: &mut Server, upstream: &Upstream, call: ToolCall, id: &str) {
    let running = calling(upstream, call);
    server.initialize(id).await;
    let asked = server.answer(running).await;
    assert_eq!(asked.headers["mcp-session-id"], id);
}

#[tokio::test]
async fn each_legacy_session_has_one_at_a_server_of_both_eras() {
    for versions in [BOTH, MODERN] {
        let (upstream, mut server) = both(versions).await;
        assert_eq!(upstream.server_info().unwrap().era, Era::Modern);
        let mode = upstream.instances();
        let [one, two] = [caller("ada", "1"), caller("ada", "2")];
        for (caller, id) in [(&one, "s1"), (&two, "s2")] {
            opens(&mut server, &upstream, owned(mode, caller), id).await;
        }
        for (caller, id) in [
            (&one, Some("s1")),
            (&two, Some("s2")),
            (&without_session(), None),
        ] {
            let found = session(&mut server, &upstream, owned(mode, caller)).await;
            assert_eq!(found.as_deref(), id);
        }
        upstream.session_ended(&one);
        deleted(&mut server, "s1").await;
    }
}

#[tokio::test]
async fn an_instance_per_principal_is_a_session_there() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| options.spare = 0);
    let of = |caller: &_| owned(Instances::Principal, caller);
    // the first call waits until it is known what is there
    let running = calling(&upstream, of(&caller("ada", "1")));
    discover(&mut server, BOTH).await;
    initialized(&mut server, "greeting").await;
    deleted(&mut server, "greeting").await;
    server.initialize("ada's").await;
    server.answer(running).await;
    for caller in [caller("ada", "2"), without_session()] {
        let found = session(&mut server, &upstream, of(&caller)).await;
        assert_eq!(found.as_deref(), Some("ada's"));
    }
    opens(&mut server, &upstream, of(&caller("eve", "1")), "eve's").await;
}

#[tokio::test]
async fn a_server_that_opens_no_session_is_asked_once_and_shared() {
    for (versions, greeting, era) in [
        (BOTH, "refused", EraChoice::Auto),
        (BOTH, "without id", EraChoice::Auto),
        ("", "without id", EraChoice::Auto),
        (MODERN, "busy", EraChoice::Auto),
        (MODERN, "silent", EraChoice::Auto),
        (BOTH, "not asked", EraChoice::Modern),
    ] {
        let mut server = Server::start().await;
        let upstream = server.upstream(|options| {
            (options.era, options.connect_timeout) = (era, Duration::from_secs(1));
        });
        discover(&mut server, versions).await;
        let mut unanswered = None;
        match greeting {
            "refused" => server.asked("initialize").await.refuse(400, -32601).await,
            "without id" => initialized(&mut server, "").await,
            "busy" => server.asked("initialize").await.answer(503, "", "").await,
            "silent" => unanswered = Some(server.asked("initialize").await),
            _ => {}
        }
        if versions.is_empty() {
            let ready = server.asked("notifications/initialized").await;
            ready.answer(202, "", "").await;
        }
        upstream.ready(LONG).await.unwrap();
        let at = format!("{versions} {greeting}");
        assert_eq!(upstream.instances(), Instances::Shared, "{at}");
        for number in ["1", "2"] {
            let caller = caller("ada", number);
            // the same where the configuration wants an instance per session
            for mode in [Instances::Shared, Instances::Session] {
                if !versions.is_empty() || mode == Instances::Shared {
                    let found = session(&mut server, &upstream, owned(mode, &caller)).await;
                    assert_eq!(found, None, "{at}");
                }
            }
        }
        drop(unanswered);
    }
}

#[tokio::test]
async fn a_server_that_names_sessions_but_opens_none_fails_those_calls() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| options.spare = 0);
    discover(&mut server, BOTH).await;
    server.asked("initialize").await.answer(503, "", "").await;
    upstream.ready(LONG).await.unwrap();
    let of = |caller: &_| owned(upstream.instances(), caller);
    let ada = caller("ada", "1");
    let mut running = calling(&upstream, of(&ada));
    let error = loop {
        tokio::select! {
            ended = &mut running => break ended.unwrap().unwrap_err(),
            asked = server.asked("initialize") => asked.answer(503, "", "").await,
        }
    };
    assert_fails(&error, ErrorKind::ConnectFailed, Delivery::NotSent);
    assert_eq!(error.code, Some(503));
    // once it opens one, calls work
    opens(&mut server, &upstream, of(&ada), "s1").await;
    let found = session(&mut server, &upstream, of(&ada)).await;
    assert_eq!(found.as_deref(), Some("s1"));
    // requests without a session do without
    let found = session(&mut server, &upstream, of(&without_session())).await;
    assert_eq!(found, None);
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_again() {
    let mut server = Server::start().await;
    let upstream = server.upstream(|options| options.spare = 0);
    let mut events = upstream.events().unwrap();
    server.greet_modern().await;
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    let address = server.stop().await;
    let ada = caller("ada", "1");
    let lost = upstream.call(owned(Instances::Shared, &ada)).await;
    lost.unwrap_err();
    assert!(matches!(events.next().await, Some(ServerEvent::Down(_))));
    let mut server = Server::start_at(address).await;
    discover(&mut server, BOTH).await;
    initialized(&mut server, "greeting").await;
    deleted(&mut server, "greeting").await;
    assert_eq!(events.next().await, Some(ServerEvent::Up));
    // the tools are listed again, and with them whose instance runs their calls
    assert_eq!(
        events.next().await,
        Some(ServerEvent::ListChanged(List::Tools))
    );
    let call = owned(upstream.instances(), &ada);
    opens(&mut server, &upstream, call, "s1").await;
}

#[tokio::test]
async fn a_server_that_opens_sessions_no_more_is_shared() {
    let (upstream, mut server) = both(BOTH).await;
    let mode = upstream.instances();
    let first = owned(mode, &caller("ada", "1"));
    opens(&mut server, &upstream, first, "s1").await;
    let running = calling(&upstream, owned(mode, &caller("ada", "2")));
    let asked = loop {
        let asked = server.next().await;
        match asked.json()["method"].as_str().unwrap_or_default() {
            "initialize" => asked.refuse(400, -32601).await,
            "server/discover" => asked.result(DISCOVERED).await,
            _ => break asked,
        }
    };
    assert!(!asked.headers.contains_key("mcp-session-id"), "{asked:?}");
    asked.result(RESULT).await;
    running.await.unwrap().unwrap();
    assert_eq!(upstream.instances(), Instances::Shared);
}
