//! Servers that are added, removed, reweighed and drained while the stack runs.

use std::time::Duration;

use callward::{
    Annotations, Drained, Effect, ErrorKind, Server, Stack, StackBuilder, ToolSpec, Tools,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bed::{fails, has, turns};

/// Tools that say which server ran them; `slow` takes a second.
fn tools(id: &str) -> Tools {
    let mut tools = Tools::new(id).unwrap();
    let hints = Annotations::default;
    for (name, hints, seconds) in [
        ("get", hints().with_read_only(true), 0),
        ("add", hints(), 0),
        ("slow", hints(), 1),
        ("wipe", hints().with_destructive(true), 0),
    ] {
        let id = id.to_owned();
        let answer = move |_: Value| {
            let id = id.clone();
            async move {
                sleep(Duration::from_secs(seconds)).await;
                Ok::<_, &str>(id)
            }
        };
        let spec = ToolSpec::new(name).annotations(hints);
        tools = tools.tool(spec, answer).unwrap();
    }
    tools
}

fn in_set(id: &str) -> Server {
    Server::new(tools(id)).in_set("set".parse().unwrap())
}

async fn start(ids: &[&str]) -> Stack {
    let servers = ids.iter().map(|id| in_set(id));
    let builder = servers.fold(Stack::builder(), StackBuilder::server);
    builder.build().await.unwrap()
}

/// Which servers a tool's calls go to, in the order of names.
async fn who(stack: &Stack, tool: &str) -> Vec<String> {
    let mut who = Vec::new();
    // a server that has just come gets a tenth of its share: this many that it is not left out by
    // chance
    for n in 0..300 {
        who.push(stack.call(tool, json!({"n": n})).await.unwrap().to_text());
    }
    who.sort_unstable();
    who.dedup();
    who
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_added_gets_calls_and_its_tools_are_announced() {
    let stack = start(&[]).await;
    assert!(stack.catalogue().entries().is_empty());
    let mut changes = stack.changes();
    stack.add_server(in_set("a")).await.unwrap();
    changes.next().await.unwrap();
    assert_eq!(who(&stack, "set.add").await, ["a"]);

    stack.add_server(in_set("b")).await.unwrap();
    assert_eq!(who(&stack, "set.add").await, ["a", "b"]);
    let servers = stack.servers();
    let ids: Vec<_> = servers.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert!(servers.iter().all(|one| one.up && one.tools == 4));
    assert_eq!(stack.limits().servers.len(), 2);
    has(stack.explain("set.add").unwrap(), &["b (weight 50)"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_of_tools_holds_for_its_set_as_long_as_it_is_there() {
    let stack = start(&["a"]).await;
    let effect = |stack: &Stack| {
        let catalogue = stack.catalogue();
        let entry = catalogue.find("set.add").unwrap().clone();
        entry.tool().plan().effect
    };
    assert_eq!(effect(&stack), Effect::Mutating);
    let mut changes = stack.changes();
    let add = "add".parse().unwrap();
    let says = in_set("b").override_tool(add, Annotations::default().with_destructive(true));
    stack.add_server(says).await.unwrap();
    assert_eq!(effect(&stack), Effect::Destructive);
    changes.next().await.unwrap();
    stack.remove_server(&"b".parse().unwrap()).unwrap();
    assert_eq!(effect(&stack), Effect::Mutating);
    changes.next().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_removed_server_finishes_its_calls_and_its_unique_tools_go() {
    let stack = start(&["a", "b"]).await;
    let answer = |_: Value| async { Ok::<_, &str>("c") };
    let only = Tools::new("c").unwrap();
    let only = only.tool(ToolSpec::new("only_here"), answer);
    let only = Server::new(only.unwrap()).in_set("set".parse().unwrap());
    stack.add_server(only).await.unwrap();
    let made = stack.prepare("set.only_here", "{}").unwrap();
    let mut changes = stack.changes();
    stack.remove_server(&"c".parse().unwrap()).unwrap();
    changes.next().await.unwrap();
    let error = fails(&stack, "set.only_here").await;
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    // made while it was there: the servers that stay do not have it
    let error = stack.run(made).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoEligibleServer);
    has(error, &["a does not offer the tool"]);

    // what was read from a server that is drained is kept, and not if it is removed
    let get = async || stack.call("set.get", json!({})).await.unwrap().to_text();
    let first = get().await;
    let first_id = first.parse().unwrap();
    stack.drain(&first_id).unwrap();
    assert_eq!(get().await, first);
    stack.remove_server(&first_id).unwrap();
    let last = get().await;
    assert_ne!(last, first);

    let calling = stack.clone();
    let running = tokio::spawn(async move { calling.call("set.slow", json!({})).await });
    turns().await;
    let leaving = stack.remove_server(&last.parse().unwrap()).unwrap();
    assert_eq!(leaving.in_flight(), 1);
    assert!(stack.catalogue().entries().is_empty() && stack.servers().is_empty());
    let error = fails(&stack, "set.add").await;
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    assert!(!running.is_finished());
    assert_eq!(leaving.finished().await, Drained::Idle);
    assert_eq!(running.await.unwrap().unwrap().to_text(), last);
}
