//! State that servers keep for a session, and which tools read and write: what a stack makes of it.

use std::collections::HashSet;
use std::sync::Arc;

use callward::cache::{CacheConfig, ScopeRules, ToolScopes};
use callward::{CallRecord, Caller, Instances, Principal, Server, SessionId, Stack, ToolError};
use callward_testkit::{MockServer, MockService};
use serde_json::json;

use crate::bed::{in_set, read, tool, up};

fn caller(session: u32) -> Arc<Caller> {
    let caller = Caller::new(Principal::new("ada"));
    Arc::new(caller.with_session(SessionId::new(session.to_string())))
}

async fn call(stack: &Stack, tool: &str, session: u32) -> Result<String, ToolError> {
    let call = stack.prepare(tool, "{}").unwrap();
    let answer = stack.run(call.with_caller(caller(session))).await;
    answer.map(|output| output.to_text())
}

fn server(id: &str) -> Arc<MockServer> {
    let tools = vec![read("read"), tool("write", json!({}))];
    MockServer::new(id, tools, MockService::counting())
}

#[tokio::test(start_paused = true)]
async fn results_are_divided_by_instance_and_epochs_are_not() {
    let server = server("s");
    let added = Server::shared(server.clone()).instances(Instances::Session);
    let stack = up(Stack::builder().server(added), &[&server]).await;
    for _ in 0..2 {
        assert_eq!(call(&stack, "s.read", 1).await.unwrap(), "1");
        assert_eq!(call(&stack, "s.read", 2).await.unwrap(), "2");
    }
    call(&stack, "s.write", 1).await.unwrap();
    assert_eq!(call(&stack, "s.read", 2).await.unwrap(), "4");
}

/// Where a session's calls go.
async fn servers_of(stack: &Stack, session: u32) -> HashSet<String> {
    let mut asked = HashSet::new();
    for tool in ["set.read", "set.write", "set.write"] {
        let record = Arc::new(CallRecord::new());
        let call = stack
            .prepare(tool, "{}")
            .unwrap()
            .with_caller(caller(session));
        stack.run(call.with_record(record.clone())).await.unwrap();
        asked.extend(record.facts().server.map(|(server, _)| server.to_string()));
    }
    asked
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_on_one_server_of_its_set() {
    let servers = ["a", "b"].map(server);
    let apart = |_: &str, server: Server| server.instances(Instances::Session);
    let stack = in_set(Stack::builder(), &servers, apart).await;
    let mut all = HashSet::new();
    for session in 0..32 {
        let asked = servers_of(&stack, session).await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        all.extend(asked);
    }
    assert_eq!(all.len(), 2, "sessions are spread");
    // a server that is drained gives its sessions up, and takes no others along
    let before = servers_of(&stack, 0).await;
    let (own, other) = match before.contains("a") {
        true => ("a", "b"),
        false => ("b", "a"),
    };
    stack.drain(&other.parse().unwrap()).unwrap();
    assert_eq!(servers_of(&stack, 0).await, before);
    stack.undrain(&other.parse().unwrap()).unwrap();
    stack.drain(&own.parse().unwrap()).unwrap();
    let moved = HashSet::from([other.to_owned()]);
    assert_eq!(servers_of(&stack, 0).await, moved);
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_set_are_shared_by_default() {
    let servers = ["a", "b"].map(server);
    let stack = in_set(Stack::builder(), &servers, |_, server| server).await;
    for session in 1..=3 {
        assert_eq!(call(&stack, "set.read", session).await.unwrap(), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_server_is_said_to_touch_joins_what_the_cache_was_told() {
    let mut cache = CacheConfig::default();
    let writes = ToolScopes::writing(["order:{id}"]).unwrap();
    let (set, tool) = ("set".parse().unwrap(), "write".parse().unwrap());
    cache.scopes = ScopeRules::default().with(set, tool, writes);
    let reads = |_: &str, server: Server| {
        let reads = ToolScopes::reading(["order:{id}"]).unwrap();
        server.tool_scopes("read".parse().unwrap(), reads)
    };
    let stack = in_set(Stack::builder().cache(cache), &[server("a")], reads).await;
    for (tool, id) in [("set.read", 1), ("set.write", 2), ("set.read", 1)] {
        stack.call(tool, json!({"id": id})).await.unwrap();
    }
    assert_eq!(stack.cache().stats().hits, 1);
}
