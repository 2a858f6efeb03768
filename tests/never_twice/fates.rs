//! Whatever servers say of a call, true or not, an unsafe one reaches them at most once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward::{
    Annotations, ArgumentRule, Condition, Delivery, ErrorKind, Server, Stack, ToolCall, ToolError,
    ToolOutput, When,
};
use callward_core::ServerEvent;
use callward_testkit::{MockServer, MockService};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

/// How a server treats one call that reached it.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answers,
    Reports,
    Fails(ErrorKind, Delivery),
    Hangs,
}

fn fate() -> impl Strategy<Value = Fate> {
    let kind = prop_oneof![
        Just(ErrorKind::ConnectFailed),
        Just(ErrorKind::ConnectionLost),
        Just(ErrorKind::ServerFault),
        Just(ErrorKind::RateLimited),
        Just(ErrorKind::Overloaded),
        Just(ErrorKind::Protocol),
        Just(ErrorKind::InvalidCall),
    ];
    let delivery = prop_oneof![
        Just(Delivery::Answered),
        Just(Delivery::NotSent),
        Just(Delivery::Unknown)
    ];
    prop_oneof![
        2 => Just(Fate::Answers),
        1 => Just(Fate::Reports),
        6 => (kind, delivery).prop_map(|(kind, delivery)| Fate::Fails(kind, delivery)),
        1 => Just(Fate::Hangs),
    ]
}

/// How often each call ran, by tool and arguments.
type Executions = Arc<Mutex<HashMap<(String, Vec<u8>), usize>>>;

/// A server that meets its calls with these fates in turn. What it says was not sent did not run.
fn server(id: &str, fates: &[Fate], executions: &Executions) -> Arc<MockServer> {
    let (fates, executions) = (fates.to_vec(), executions.clone());
    let mock = MockService::new(move |call: ToolCall, n| {
        let fate = fates[n % fates.len()];
        if !matches!(fate, Fate::Fails(_, Delivery::NotSent)) {
            let key = (call.tool().name().to_string(), call.arguments().to_vec());
            *executions.lock().entry(key).or_insert(0) += 1;
        }
        async move {
            match fate {
                Fate::Answers => Ok(ToolOutput::text("done")),
                Fate::Reports => Ok(ToolOutput::error_text("no")),
                Fate::Fails(kind, delivery) => Err(ToolError::new(kind, delivery, "scripted")),
                Fate::Hangs => std::future::pending().await,
            }
        }
    });
    let tool = |name: &str, annotations: Value| json!({"name": name, "annotations": annotations});
    let tools = vec![
        tool("read", json!({"readOnlyHint": true})),
        tool("send", json!({"destructiveHint": false})),
        tool(
            "wipe",
            json!({"destructiveHint": true, "idempotentHint": true}),
        ),
        tool("tabs", json!({"destructiveHint": true})),
    ];
    MockServer::new(id, tools, mock)
}

/// A server of the set, of which the operator says that `tabs` reads where `action` is `list`.
fn in_set(server: &Arc<MockServer>) -> Server {
    let lists = When::argument("action", Condition::equals("list")).unwrap();
    let reads = ArgumentRule::new(lists, Annotations::default().with_read_only(true)).unwrap();
    Server::shared(server.clone())
        .in_set("set".parse().unwrap())
        .refine_tool("tabs".parse().unwrap(), reads)
}

/// Arguments of `tabs`: only the first are a list for every reader.
fn of_tabs(kind: u8, n: usize) -> (String, bool) {
    let (members, reads) = match kind {
        0 => (r#""action":"list""#, true),
        1 => (r#""action":"close""#, false),
        2 => (r#""action":"close","action":"list""#, false),
        3 => (r#""action":"list","Action":"close""#, false),
        _ => (r#""do":"close""#, false),
    };
    (format!("{{{members},\"n\":{n}}}"), reads)
}

/// Calls tools of two servers, by name and arguments, and checks that each call that is unsafe ran
/// at most once, and that its caller learns that it may have run.
async fn run(
    first: &[Fate],
    second: &[Fate],
    calls: impl Iterator<Item = (&'static str, String, bool)>,
) -> Result<(), TestCaseError> {
    let executions = Executions::default();
    let one = server("one", first, &executions);
    let two = server("two", second, &executions);
    let builder = Stack::builder().server(in_set(&one)).server(in_set(&two));
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    one.emit(&ServerEvent::Up);
    two.emit(&ServerEvent::Up);
    let stack = building.await.unwrap().unwrap();

    let mut reading = Vec::new();
    for (tool, arguments, reads) in calls {
        if reads {
            reading.push((tool.to_owned(), arguments.clone().into_bytes()));
        }
        let call = stack.prepare(&format!("set.{tool}"), arguments).unwrap();
        if let Err(error) = stack.run(call).await
            && !reads
        {
            prop_assert!(
                error.delivery() != Delivery::Unknown || error.kind() == ErrorKind::OutcomeUnknown,
                "an unsafe call that may have run must say so: {error}"
            );
        }
        // breakers must not hide everything that comes later
        tokio::time::advance(Duration::from_secs(120)).await;
    }
    for (call, runs) in executions.lock().iter() {
        if !reading.contains(call) {
            let arguments = std::str::from_utf8(&call.1);
            prop_assert_eq!(*runs, 1, "{} {:?}", call.0, arguments);
        }
    }
    Ok(())
}

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_call_that_is_unsafe_by_its_arguments_runs_at_most_once(
        first in prop::collection::vec(fate(), 1..12),
        second in prop::collection::vec(fate(), 1..12),
        kinds in prop::collection::vec(0..5_u8, 1..20),
        chance in any::<u64>(),
    ) {
        fastrand::seed(chance);
        let calls = kinds.iter().enumerate().map(|(n, kind)| {
            let (arguments, reads) = of_tabs(*kind, n);
            ("tabs", arguments, reads)
        });
        paused().block_on(run(&first, &second, calls))?;
    }

    #[test]
    fn an_unsafe_call_reaches_servers_at_most_once(
        first in prop::collection::vec(fate(), 1..12),
        second in prop::collection::vec(fate(), 1..12),
        tools in prop::collection::vec(prop_oneof![Just("read"), Just("send"), Just("wipe")], 1..20),
        chance in any::<u64>(),
    ) {
        fastrand::seed(chance);
        let calls = tools.iter().enumerate();
        let calls = calls.map(|(n, tool)| (*tool, json!({"n": n}).to_string(), *tool == "read"));
        paused().block_on(run(&first, &second, calls))?;
    }
}
