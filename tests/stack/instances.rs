//! State that servers keep for a session or a principal, and what a stack makes of it.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callward::{
    Annotations, CallRecord, Caller, Instances, Principal, Server, SessionId, Stack, ToolError,
    ToolSpec, Tools,
};
use serde_json::Value;

/// A server with a tool that reads and counts how often it ran, one that writes, and one that
/// fails.
fn server(id: &str) -> (Server, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let runs = reads.clone();
    let read_only = || Annotations::default().with_read_only(true);
    let tools = Tools::new(id)
        .unwrap()
        .tool(
            ToolSpec::new("read").annotations(read_only()),
            move |_: Value| {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok::<_, String>(run.to_string()) }
            },
        )
        .unwrap()
        .tool(ToolSpec::new("write"), |_: Value| async {
            Ok::<_, String>("done")
        })
        .unwrap();
    (Server::new(tools), reads)
}

fn caller(session: u32) -> Arc<Caller> {
    let caller = Caller::new(Principal::new("ada"));
    Arc::new(caller.with_session(SessionId::new(session.to_string())))
}

async fn call(stack: &Stack, tool: &str, caller: &Arc<Caller>) -> Result<String, ToolError> {
    let call = stack.prepare(tool, "{}").unwrap();
    let answer = stack.run(call.with_caller(caller.clone())).await;
    answer.map(|output| output.to_text())
}

#[tokio::test(start_paused = true)]
async fn results_are_divided_by_instance_and_epochs_are_not() {
    let (server, reads) = server("s");
    let builder = Stack::builder().server(server.instances(Instances::Session));
    let stack = builder.build().await.unwrap();
    let [one, other] = [caller(1), caller(2)];
    for _ in 0..2 {
        assert_eq!(call(&stack, "s.read", &one).await.unwrap(), "1");
        assert_eq!(call(&stack, "s.read", &other).await.unwrap(), "2");
    }
    call(&stack, "s.write", &one).await.unwrap();
    assert_eq!(call(&stack, "s.read", &other).await.unwrap(), "3");
    assert_eq!(reads.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn in_process_tools_are_shared_by_default() {
    let (server, _) = server("s");
    let stack = Stack::builder().server(server).build().await.unwrap();
    for session in 1..=3 {
        assert_eq!(call(&stack, "s.read", &caller(session)).await.unwrap(), "1");
    }
}

/// Where a session's calls go.
async fn servers_of(stack: &Stack, session: u32) -> HashSet<String> {
    let mut asked = HashSet::new();
    for tool in ["set.read", "set.write", "set.write"] {
        let record = Arc::new(CallRecord::new());
        let call = stack.prepare(tool, "{}").unwrap();
        let call = call
            .with_caller(caller(session))
            .with_record(record.clone());
        stack.run(call).await.unwrap();
        asked.extend(record.server().map(|(server, _)| server.to_string()));
    }
    asked
}

fn pair(mode: Option<Instances>) -> [Server; 2] {
    ["a", "b"].map(|id| {
        let server = server(id).0.in_set("set".parse().unwrap());
        match mode {
            Some(mode) => server.instances(mode),
            None => server,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_on_one_server_of_its_set() {
    let [a, b] = pair(Some(Instances::Session));
    let stack = Stack::builder().server(a).server(b).build().await.unwrap();
    let mut all = HashSet::new();
    for session in 0..32 {
        let asked = servers_of(&stack, session).await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        all.extend(asked);
    }
    assert_eq!(all.len(), 2, "sessions are spread");
    // a server that is drained gives its sessions up, and takes no others along
    let before = servers_of(&stack, 0).await;
    let other = if before.contains("a") { "b" } else { "a" };
    stack.drain(&other.parse().unwrap()).unwrap();
    assert_eq!(servers_of(&stack, 0).await, before);
    stack.undrain(&other.parse().unwrap()).unwrap();
    let [own] = &before.iter().collect::<Vec<_>>()[..] else {
        unreachable!("it was one");
    };
    stack.drain(&own.parse().unwrap()).unwrap();
    assert_eq!(
        servers_of(&stack, 0).await,
        HashSet::from([other.to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_set_are_shared_unless_all_say_otherwise() {
    let [a, b] = pair(None);
    let stack = Stack::builder().server(a).server(b).build().await.unwrap();
    assert_eq!(call(&stack, "set.read", &caller(1)).await.unwrap(), "1");
    assert_eq!(call(&stack, "set.read", &caller(2)).await.unwrap(), "1");
    let [a, _] = pair(Some(Instances::Principal));
    let [_, b] = pair(None);
    let fault = Stack::builder()
        .server(a)
        .server(b)
        .build()
        .await
        .unwrap_err();
    assert!(fault.to_string().contains("instance"), "{fault}");
}
