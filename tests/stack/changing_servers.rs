//! Servers that are added, removed, reweighed and drained while the stack runs.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::{Arc, Weak};
use std::time::Duration;

use callward::breaker::Subject;
use callward::cache::ToolScopes;
use callward::core::Weight;
use callward::{
    Annotations, BuildError, CallRecord, Drained, Effect, ErrorKind, Server, Stack, ToolCall,
    ToolError, ToolOutput, ToolServer, ToolSpec, Tools, Trust,
};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Tools that say which server ran them; `slow` takes a second.
fn tools(id: &str) -> Tools {
    let run = |id: &str, takes: Duration| {
        let id = id.to_owned();
        tower::service_fn(move |_: ToolCall| {
            let id = id.clone();
            async move {
                sleep(takes).await;
                Ok::<_, ToolError>(ToolOutput::text(id))
            }
        })
    };
    let reads = Annotations::default().with_read_only(true);
    let second = Duration::from_secs(1);
    Tools::new(id)
        .unwrap()
        .service(
            ToolSpec::new("get").annotations(reads),
            run(id, Duration::ZERO),
        )
        .unwrap()
        .service(ToolSpec::new("add"), run(id, Duration::ZERO))
        .unwrap()
        .service(ToolSpec::new("slow"), run(id, second))
        .unwrap()
        .service(
            ToolSpec::new("wipe").annotations(Annotations::default().with_destructive(true)),
            run(id, Duration::ZERO),
        )
        .unwrap()
}

fn in_set(id: &str) -> Server {
    Server::new(tools(id)).in_set("set".parse().unwrap())
}

async fn start(ids: &[&str]) -> Stack {
    let builder = ids
        .iter()
        .fold(Stack::builder(), |builder, id| builder.server(in_set(id)));
    builder.build().await.unwrap()
}

fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
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
    let explained = stack.explain("set.add").unwrap();
    assert!(
        explained.to_string().contains("b (weight 50)"),
        "{explained}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_is_followed_as_at_the_start() {
    let listed = vec![json!({"name": "get_a", "annotations": {"readOnlyHint": true}})];
    let late = MockServer::new("late", listed, MockService::counting());
    let stack = start(&[]).await;
    // it says nothing of itself, so that adding it takes the startup timeout
    stack
        .add_server(Server::shared(late.clone()))
        .await
        .unwrap();
    assert!(!stack.servers()[0].up);
    let mut changes = stack.changes();
    late.emit(&ServerEvent::Up);
    changes.next().await.unwrap();
    stack.call("late.get_a", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let stack = start(&["a"]).await;
    let (generation, breakers) = (stack.catalogue().generation(), stack.breakers().len());
    let no_rate = Server::new(tools("c")).calls_per_minute(-1.0);
    let scopes = ToolScopes::reading(["x"]).unwrap();
    for (server, reported) in [
        (in_set("a"), "two servers are called `a`"),
        (
            in_set("b").trust(Trust::Untrusted),
            "how far they are trusted",
        ),
        (in_set("b").prefix(None), "the prefix"),
        (Server::new(tools("c")).weight(101), "101 is not a weight"),
        (no_rate, "server `c`"),
        (
            in_set("b").tool_scopes("get".parse().unwrap(), scopes.clone()),
            "which state a tool reads and writes cannot change",
        ),
    ] {
        let error = stack.add_server(server).await.unwrap_err().to_string();
        assert!(error.contains(reported), "{error}");
    }
    assert_eq!(stack.servers().len(), 1);
    assert_eq!(stack.catalogue().generation(), generation);
    assert_eq!(stack.breakers().len(), breakers);

    let unknown = "z".parse().unwrap();
    assert!(stack.remove_server(&unknown).is_err());
    assert!(stack.reweigh(&unknown, weight(1)).is_err());
    assert!(stack.undrain(&unknown).is_err());
    let error = stack.drain(&unknown).unwrap_err();
    assert_eq!(error.to_string(), "no replica set has a server \"z\"");
    // tools that were not called yet may get any hints
    let server = Server::new(tools("c")).tool_scopes("get".parse().unwrap(), scopes);
    stack.add_server(server).await.unwrap();
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
    let only = Tools::new("c")
        .unwrap()
        .tool(ToolSpec::new("only_here"), |_: Value| async {
            Ok::<_, &str>("c")
        });
    let only = Server::new(only.unwrap()).in_set("set".parse().unwrap());
    stack.add_server(only).await.unwrap();
    let made = stack.prepare("set.only_here", "{}").unwrap();
    let mut changes = stack.changes();
    stack.remove_server(&"c".parse().unwrap()).unwrap();
    timeout(Duration::from_secs(1), changes.next())
        .await
        .unwrap()
        .unwrap();
    let error = stack.call("set.only_here", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTool);
    // made while it was there: the servers that stay do not have it
    let error = stack.run(made).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert!(
        error.message().contains("a does not offer the tool"),
        "{error}"
    );

    stack.remove_server(&"b".parse().unwrap()).unwrap();
    let running = tokio::spawn({
        let stack = stack.clone();
        async move { stack.call("set.slow", json!({})).await }
    });
    tokio::task::yield_now().await;
    let leaving = stack.remove_server(&"a".parse().unwrap()).unwrap();
    assert_eq!(leaving.in_flight(), 1);
    assert!(stack.catalogue().entries().is_empty() && stack.servers().is_empty());
    let error = stack.call("set.add", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTool);
    assert!(!running.is_finished());
    assert_eq!(leaving.finished().await, Drained::Idle);
    assert_eq!(running.await.unwrap().unwrap().to_text(), "a");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_from_a_removed_server_is_read_again() {
    let stack = start(&["a", "b"]).await;
    let get = async || stack.call("set.get", json!({})).await.unwrap();
    let first = get().await.to_text();
    stack.drain(&first.parse().unwrap()).unwrap();
    assert_eq!(get().await.to_text(), first, "kept");
    stack.remove_server(&first.parse().unwrap()).unwrap();
    assert_ne!(get().await.to_text(), first);
}

#[tokio::test(start_paused = true)]
async fn weights_and_drains_hold_for_the_very_next_call() {
    let stack = start(&["a", "b"]).await;
    let [a, b] = ["a", "b"].map(|id| id.parse().unwrap());
    stack.reweigh(&a, weight(49)).unwrap();
    assert_eq!(stack.servers()[0].weight, weight(49));
    assert_eq!(who(&stack, "set.wipe").await, ["b"]);
    stack.reweigh(&b, Weight::STANDBY).unwrap();
    assert_eq!(who(&stack, "set.add").await, ["a"], "b stands by");
    let error = stack.call("set.wipe", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);

    stack.reweigh(&b, weight(60)).unwrap();
    stack.drain(&a).unwrap();
    assert!(stack.servers()[0].is_draining);
    assert_eq!(who(&stack, "set.add").await, ["b"]);
    stack.drain(&b).unwrap();
    let error = stack.call("set.add", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    assert!(error.message().contains("a is drained"), "{error}");
    assert_eq!(stack.catalogue().entries().len(), 4, "its tools stay");
    stack.undrain(&a).unwrap();
    stack.reweigh(&a, weight(50)).unwrap();
    assert_eq!(who(&stack, "set.wipe").await, ["a"]);
}

/// Counts whatever could be left behind.
fn counts(stack: &Stack) -> [usize; 9] {
    [
        stack.servers().len(),
        stack.catalogue().entries().len(),
        stack.catalogue().refused().len(),
        stack.breakers().len(),
        stack.limits().servers.len(),
        stack.limits().rates.len(),
        stack.retry_budgets().len(),
        stack.cache().tools().len(),
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
    ]
}

/// A server, and what tells whether it is still held.
fn held(id: &str) -> (Server, Weak<dyn ToolServer>) {
    let server: Arc<dyn ToolServer> = Arc::new(tools(id));
    let weak = Arc::downgrade(&server);
    (Server::shared(server), weak)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_servers_that_come_and_go_leave_nothing_behind() {
    let stack = start(&["a"]).await;
    for tool in ["set.get", "set.add", "set.wipe", "set.slow"] {
        stack.call(tool, json!({})).await.unwrap();
    }
    let before = counts(&stack);
    for n in 0..1_000 {
        // now in a set of its own, now beside another
        let id = format!("s{n}");
        let (server, weak) = held(&id);
        let limited = Annotations::default().with_rate_limit(600.0);
        let (server, set) = match n % 2 {
            0 => (server.defaults(limited), id.as_str()),
            _ => (server.in_set("set".parse().unwrap()), "set"),
        };
        stack.add_server(server).await.unwrap();
        let id = id.parse().unwrap();
        for tool in ["get", "add", "wipe"] {
            stack
                .call(&format!("{set}.{tool}"), json!({}))
                .await
                .unwrap();
        }
        stack
            .breaker_set()
            .force_open(&id, Subject::Tool("add".parse().unwrap()));
        let running = tokio::spawn({
            let (stack, tool) = (stack.clone(), format!("{set}.slow"));
            async move { stack.call(&tool, json!({})).await }
        });
        tokio::task::yield_now().await;
        let leaving = stack.remove_server(&id).unwrap();
        if n % 3 == 0 {
            running.abort();
            let _ = running.await;
        } else {
            running.await.unwrap().unwrap();
        }
        assert_eq!(leaving.finished().await, Drained::Idle);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        assert!(weak.upgrade().is_none(), "{n}: its server is let go");
    }
    assert_eq!(counts(&stack), before);
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare("set.get", "{}").unwrap();
    stack.run(call.with_record(record)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_is_kept_until_its_last_call_has_ended() {
    let stack = start(&[]).await;
    let (server, weak) = held("a");
    stack.add_server(server).await.unwrap();
    let running = tokio::spawn({
        let stack = stack.clone();
        async move { stack.call("a.slow", json!({})).await }
    });
    tokio::task::yield_now().await;
    let leaving = stack.remove_server(&"a".parse().unwrap()).unwrap();
    // another one under its name has nothing to do with it
    let (server, other) = held("a");
    stack.add_server(server).await.unwrap();
    assert!(weak.upgrade().is_some());
    assert_eq!(leaving.in_flight(), 1);
    assert_eq!(stack.servers()[0].in_flight, 0);
    stack.call("a.add", json!({})).await.unwrap();
    running.await.unwrap().unwrap();
    leaving.finished().await;
    tokio::task::yield_now().await;
    assert!(weak.upgrade().is_none() && other.upgrade().is_some());
    let breakers = stack.breakers();
    assert!(breakers.iter().any(|one| one.server.as_str() == "a"));
}

#[tokio::test(start_paused = true)]
async fn errors_of_building_and_of_adding_are_the_same() {
    let both = || in_set("b").trust(Trust::Trusted);
    let built = Stack::builder().server(in_set("a")).server(both());
    let stack = start(&["a"]).await;
    let error = stack.add_server(both()).await.unwrap_err();
    assert_eq!(error, built.build().await.unwrap_err());
    assert!(matches!(error, BuildError::Conflict { .. }));
}
