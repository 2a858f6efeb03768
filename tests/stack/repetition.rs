//! A session that repeats the same failing call, and slow reads, through the whole stack.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::sync::Arc;
use std::time::Duration;

use callward::core::{HedgeStatus, ServerEvent};
use callward::loopguard::LoopGuardConfig;
use callward::retry::hedge::HedgeConfig;
use callward::{
    BuildError, CallRecord, Caller, Principal, Server, SessionId, Stack, StackBuilder, ToolOutput,
};
use callward_testkit::{MockServer, MockService};
use serde_json::{Value, json};

fn session(id: &str) -> Arc<Caller> {
    Arc::new(Caller::new(Principal::new("ada")).with_session(SessionId::new(id)))
}

/// Builds a stack of these servers, all of them up.
async fn build(mut builder: StackBuilder, set: &str, servers: &[Arc<MockServer>]) -> Stack {
    for server in servers {
        builder = builder.server(Server::shared(server.clone()).in_set(set.parse().unwrap()));
    }
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in servers {
        server.emit(&ServerEvent::Up);
    }
    building.await.unwrap().unwrap()
}

/// Sends a call of a session; returns `true` if a server was asked, and what the model gets.
async fn send(stack: &Stack, tool: &str, arguments: Value, caller: Arc<Caller>) -> (bool, String) {
    let record = Arc::new(CallRecord::new());
    let call = stack.prepare(tool, arguments.to_string()).unwrap();
    let call = call.with_caller(caller).with_record(record.clone());
    let output = stack.run(call).await.unwrap();
    assert_eq!(record.was_guarded(), record.started_attempts() == 0);
    (!record.was_guarded(), output.to_text())
}

/// Orders of which none is found, and one tool that answers.
fn orders() -> Arc<MockServer> {
    let tools =
        ["get_order", "add_note", "cancel_order", "list_orders"].map(|name| json!({"name": name}));
    let service = MockService::new(|call, _| async move {
        match call.tool().name().as_str() {
            "list_orders" => Ok(ToolOutput::text("1, 2, 3")),
            _ => Ok(ToolOutput::error_text("no such order")),
        }
    });
    MockServer::new("orders", tools.to_vec(), service)
}

#[tokio::test(start_paused = true)]
async fn the_sixth_equal_failing_call_of_a_session_is_answered_without_a_server() {
    let stack = build(Stack::builder(), "orders", &[orders()]).await;
    for tool in ["orders.add_note", "orders.cancel_order"] {
        let id = |id: u32| json!({"id": id});
        for _ in 0..5 {
            let (asked, reported) = send(&stack, tool, id(7), session("1")).await;
            assert!(asked && reported == "no such order", "{reported}");
        }
        let (asked, reported) = send(&stack, tool, id(7), session("1")).await;
        assert!(
            !asked && reported.contains("no such order") && reported.contains("5 times"),
            "{reported}"
        );

        assert!(
            send(&stack, tool, id(8), session("1")).await.0,
            "other arguments"
        );
        assert!(
            send(&stack, tool, id(7), session("2")).await.0,
            "another session"
        );
        assert!(
            send(&stack, tool, id(7), Caller::local()).await.0,
            "no session"
        );
    }
    assert_eq!(stack.loop_guard_stats().answered, 2);
    tokio::time::advance(Duration::from_secs(5 * 60)).await;
    let again = send(&stack, "orders.add_note", json!({"id": 7}), session("1")).await;
    assert!(again.0, "one try is let through again");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_polls_finds_what_appears_after_many_tries() {
    let files = MockService::new(|_, n| async move {
        match n {
            1..=8 => Ok(ToolOutput::error_text("no such file")),
            _ => Ok(ToolOutput::text("ready")),
        }
    });
    let files = MockServer::new("files", vec![json!({"name": "read_file"})], files);
    let stack = build(Stack::builder(), "files", &[files]).await;
    for n in 1..=9 {
        let path = json!({"path": "/done"});
        let (asked, text) = send(&stack, "files.read_file", path, session("1")).await;
        assert!(asked, "poll {n}: {text}");
        assert_eq!(text == "ready", n == 9, "poll {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_guard_can_be_set_and_switched_off() {
    let told_after = async |config: Option<LoopGuardConfig>| {
        let builder = Stack::builder().loop_guard(config);
        let stack = build(builder, "orders", &[orders()]).await;
        for n in 1..=20 {
            if !send(&stack, "orders.add_note", json!({}), session("1"))
                .await
                .0
            {
                return Some(n);
            }
        }
        None
    };
    let twice = LoopGuardConfig::default().with_failures(2);
    assert_eq!(told_after(Some(twice)).await, Some(3));
    assert_eq!(told_after(None).await, None);
    let never = LoopGuardConfig::default().with_failures(0);
    let fault = Stack::builder()
        .loop_guard(never)
        .build()
        .await
        .unwrap_err();
    let reported = matches!(&fault, BuildError::Settings(text) if text.contains("failures"));
    assert!(reported, "{fault}");
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
        let reads = json!({"name": "read", "annotations": {"readOnlyHint": true}});
        let writes = json!({"name": "write", "annotations": {"idempotentHint": true, "destructiveHint": false}});
        MockServer::new(id, vec![reads, writes], service)
    })
}

/// Calls twenty-one times; returns how long the last call took, and its record.
async fn twenty_one(tool: &str, hedge: Option<HedgeConfig>) -> (Stack, Duration, Arc<CallRecord>) {
    let stack = build(Stack::builder().hedge(hedge), "set", &forecasts()).await;
    let mut last = (Duration::ZERO, Arc::default());
    for n in 1..=21 {
        let record = Arc::new(CallRecord::new());
        let call = stack.prepare(tool, json!({"n": n}).to_string()).unwrap();
        let begin = tokio::time::Instant::now();
        let output = stack.run(call.with_record(record.clone())).await;
        if let Ok(output) = output {
            let server = record.server().unwrap().0;
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
    assert_eq!(record.hedge(), HedgeStatus::Won);
    assert_eq!((stack.hedge_stats().sent, stack.hedge_stats().won), (1, 1));
    let servers: Vec<_> = record.attempts().into_iter().map(|a| a.server).collect();
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
        assert_eq!(record.hedge(), HedgeStatus::None);
        assert_eq!(stack.hedge_stats().sent, 0);
    }
}
