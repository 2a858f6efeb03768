//! Never twice: no call that may have had an effect is sent again unless its tool is safe to repeat.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::{Delivery, ErrorKind, Server, Stack, ToolCall, ToolError, ToolOutput};
use tollgate_core::ServerEvent;
use tollgate_testkit::{MockServer, MockService};

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

fn server(id: &str, fates: &[Fate]) -> (Arc<MockServer>, MockService) {
    let fates = fates.to_vec();
    let mock = MockService::new(move |_, n| {
        let fate = fates[n % fates.len()];
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
        tool("write", json!({"destructiveHint": false})),
        tool(
            "wipe",
            json!({"destructiveHint": true, "idempotentHint": true}),
        ),
    ];
    (MockServer::new(id, tools, mock.clone()), mock)
}

fn executions(seen: &[ToolCall]) -> HashMap<(String, Vec<u8>), usize> {
    let mut counts = HashMap::new();
    for call in seen {
        let key = (call.tool().name().to_string(), call.arguments().to_vec());
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_servers_do_an_unsafe_call_reaches_them_at_most_once(
        first in prop::collection::vec(fate(), 1..12),
        second in prop::collection::vec(fate(), 1..12),
        tools in prop::collection::vec(prop_oneof![Just("read"), Just("write"), Just("wipe")], 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (one, one_mock) = server("one", &first);
            let (two, two_mock) = server("two", &second);
            let builder = Stack::builder()
                .server(Server::shared(one.clone()).in_set("set".parse().unwrap()))
                .server(Server::shared(two.clone()).in_set("set".parse().unwrap()));
            let building = tokio::spawn(builder.build());
            tokio::task::yield_now().await;
            one.emit(&ServerEvent::Up);
            two.emit(&ServerEvent::Up);
            let stack = building.await.unwrap().unwrap();

            for (n, tool) in tools.iter().enumerate() {
                let call = stack.prepare(&format!("set.{tool}"), json!({"n": n}).to_string()).unwrap();
                let answer = stack.run(call).await;
                if let Err(error) = answer
                    && *tool != "read"
                {
                    prop_assert!(
                        error.delivery() != Delivery::Unknown || error.kind() == ErrorKind::OutcomeUnknown,
                        "an unsafe call that may have run must say so: {error}"
                    );
                }
                // breakers must not hide everything that comes later
                tokio::time::advance(Duration::from_secs(120)).await;
            }

            let mut seen = one_mock.seen();
            seen.extend(two_mock.seen());
            for ((tool, arguments), runs) in executions(&seen) {
                if tool != "read" {
                    prop_assert_eq!(runs, 1, "{} {:?}", tool, String::from_utf8(arguments));
                }
            }
            Ok(())
        })?;
    }
}
