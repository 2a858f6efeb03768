//! A session that repeats the same failing call, and slow reads, through the whole stack.

use std::sync::Arc;
use std::time::Duration;

use callward::core::HedgeStatus;
use callward::retry::hedge::HedgeConfig;
use callward::{CallRecord, Caller, Principal, SessionId, Stack, StackBuilder, ToolOutput};
use callward_testkit::{MockServer, MockService};
use serde_json::{Value, json};

use crate::bed::{alone, has, in_set, read, recorded, tool};

fn session(id: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")).with_session(SessionId::new(id)))
}

/// Sends a call of a session; returns `true` if a server was asked, and what the model gets.
async fn send(stack: &Stack, tool: &str, arguments: Value, caller: Arc<Caller>) -> (bool, String) {
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare(tool, arguments.to_string()).unwrap();
    let call = call.with_caller(caller).with_record(record.clone());
    let output = stack.run(call).await.unwrap();
    let facts = record.facts();
    assert_eq!(facts.is_guarded, facts.started_attempts == 0);
    (!facts.is_guarded, output.to_text())
}

/// Orders of which none is found.
async fn orders(builder: StackBuilder) -> Stack {
    let service = MockService::new(|_, _| async { Ok(ToolOutput::error_text("no such order")) });
    let tools = ["add_note", "cancel_order"].map(|name| tool(name, json!({})));
    alone(builder, tools.to_vec(), &service).await.0
}

#[tokio::test(start_paused = true)]
async fn the_sixth_equal_failing_call_of_a_session_is_answered_without_a_server() {
    let stack = orders(Stack::builder()).await;
    for tool in ["s.add_note", "s.cancel_order"] {
        let id = |id: u32| json!({"id": id});
        for _ in 0..5 {
            let (asked, reported) = send(&stack, tool, id(7), session("1")).await;
            assert!(asked && reported == "no such order", "{reported}");
        }
        let (asked, reported) = send(&stack, tool, id(7), session("1")).await;
        assert!(!asked);
        has(reported, &["no such order", "5 times"]);
        for (other, id, caller) in [
            ("arguments", id(8), session("1")),
            ("session", id(7), session("2")),
            ("no session", id(7), Caller::local()),
        ] {
            assert!(send(&stack, tool, id, caller).await.0, "{other}");
        }
    }
    assert_eq!(stack.loop_guard_stats().answered, 2);
    tokio::time::advance(Duration::from_secs(5 * 60)).await;
    let again = send(&stack, "s.add_note", json!({"id": 7}), session("1")).await;
    assert!(again.0, "one try is let through again");
}

/// Two servers of one set. The first call after twenty hangs at whichever gets it.
fn forecasts() -> [Arc<MockServer>; 2] {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    ["north", "south"].map(|id| {
        let asked = asked.clone();
        let service = MockService::new(move |_, _| {
            let n = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            async move {
                match n {
                    21 => std::future::pending().await,
                    _ => tokio::time::sleep(Duration::from_millis(100)).await,
                }
                Ok(ToolOutput::text(id))
            }
        });
        let writes = json!({"idempotentHint": true, "destructiveHint": false});
        MockServer::new(id, vec![read("read"), tool("write", writes)], service)
    })
}

/// Calls twenty-one times; returns how long the last call took, and its record.
async fn twenty_one(tool: &str, hedge: Option<HedgeConfig>) -> (Stack, Duration, Arc<CallRecord>) {
    let builder = Stack::builder().hedge(hedge);
    let stack = in_set(builder, &forecasts(), |_, server| server).await;
    let mut last = (Duration::ZERO, Arc::default());
    for n in 1..=21 {
        let begin = tokio::time::Instant::now();
        let (output, record) = recorded(&stack, tool, json!({"n": n})).await;
        if let Ok(output) = output {
            let server = record.facts().server.unwrap().0;
            assert_eq!(output.to_text(), server.as_str(), "who answered is named");
        }
        last = (begin.elapsed(), record);
    }
    (stack, last.0, last.1)
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_is_answered_by_another_server_where_hedging_is_on() {
    let (stack, took, record) = twenty_one("set.read", Some(HedgeConfig::default())).await;
    assert!(took < Duration::from_millis(210), "{took:?}");
    assert_eq!(record.facts().hedge, HedgeStatus::Won);
    assert_eq!((stack.hedge_stats().sent, stack.hedge_stats().won), (1, 1));
    let servers: Vec<_> = record
        .facts()
        .attempts
        .into_iter()
        .map(|a| a.server)
        .collect();
    assert_eq!(servers.len(), 2);
    assert_ne!(servers[0], servers[1], "each attempt names its own server");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_hedged_by_default_and_no_write_ever() {
    for (tool, hedge) in [
        ("set.read", None),
        ("set.write", Some(HedgeConfig::default())),
    ] {
        let (stack, took, record) = twenty_one(tool, hedge).await;
        // its attempt timeout
        assert!(took >= Duration::from_secs(60), "{tool}: {took:?}");
        assert_eq!(record.facts().hedge, HedgeStatus::None);
        assert_eq!(stack.hedge_stats().sent, 0);
    }
}
