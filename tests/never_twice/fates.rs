//! Whatever servers say of a call, true or not, an unsafe one reaches them at most once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callward::{Delivery, ErrorKind, Server, Stack, ToolCall, ToolError, ToolOutput};
use callward_core::ServerEvent;
use callward_testkit::truth::Sort;
use callward_testkit::{MockServer, MockService, calls};
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::sample::select;

use crate::round::paused;

/// How a server treats one call that reached it.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answers,
    Reports,
    Fails(ErrorKind, Delivery),
    Hangs,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let kind = select(&[
        ErrorKind::ConnectFailed,
        ErrorKind::ConnectionLost,
        ErrorKind::ServerFault,
        ErrorKind::RateLimited,
        ErrorKind::Overloaded,
        ErrorKind::Protocol,
        ErrorKind::InvalidCall,
    ]);
    let delivery = select(&[Delivery::Answered, Delivery::NotSent, Delivery::Unknown]);
    let fate = prop_oneof![
        2 => Just(Fate::Answers),
        1 => Just(Fate::Reports),
        6 => (kind, delivery).prop_map(|(kind, delivery)| Fate::Fails(kind, delivery)),
        1 => Just(Fate::Hangs),
    ];
    prop::collection::vec(fate, 1..12)
}

/// How often each call ran, by tool and arguments.
type Executions = Arc<Mutex<HashMap<(String, Vec<u8>), usize>>>;

/// A server that meets its calls with these fates in turn. What it says was not sent did not run.
fn server(id: &str, fates: Vec<Fate>, executions: &Executions) -> Arc<MockServer> {
    let executions = executions.clone();
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
    let tools = calls::tools().into_iter();
    let tools = tools.map(|tool| serde_json::from_slice(&tool.raw).unwrap());
    MockServer::new(id, tools.collect(), mock)
}

/// Calls tools of two servers, and checks that each call that is unsafe ran at most once, and that
/// its caller learns that it may have run.
async fn run(fates: [Vec<Fate>; 2], kinds: &[(&str, Sort)]) -> Result<(), TestCaseError> {
    let executions = Executions::default();
    let [first, second] = fates;
    let servers = [("one", first), ("two", second)];
    let servers = servers.map(|(id, fates)| server(id, fates, &executions));
    let builder = servers.iter().fold(Stack::builder(), |builder, server| {
        let server = Server::shared(server.clone()).in_set("set".parse().unwrap());
        builder.server(server.refine_tool("tabs".parse().unwrap(), calls::tabs_that_read()))
    });
    let building = tokio::spawn(builder.build());
    tokio::task::yield_now().await;
    for server in &servers {
        server.emit(&ServerEvent::Up);
    }
    let stack = building.await.unwrap().unwrap();

    let mut sorts = HashMap::new();
    for (n, (tool, sort)) in (0..).zip(kinds) {
        let arguments = calls::arguments(tool, *sort, n);
        let key = ((*tool).to_owned(), arguments.clone().into_bytes());
        sorts.insert(key, *sort);
        let call = stack.prepare(&format!("set.{tool}"), arguments).unwrap();
        if let Err(error) = stack.run(call).await
            && *sort == Sort::Unsafe
        {
            prop_assert!(
                error.delivery != Delivery::Unknown || error.kind == ErrorKind::OutcomeUnknown,
                "an unsafe call that may have run must say so: {error}"
            );
        }
        // breakers must not hide everything that comes later
        tokio::time::advance(Duration::from_secs(120)).await;
    }
    for (call, runs) in executions.lock().iter() {
        if sorts[call] == Sort::Unsafe {
            prop_assert_eq!(*runs, 1, "{:?}", call);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_unsafe_call_reaches_servers_at_most_once(
        first in fates(),
        second in fates(),
        kinds in prop::collection::vec(select(&calls::KINDS), 1..20),
        chance in any::<u64>(),
    ) {
        fastrand::seed(chance);
        paused().block_on(run([first, second], &kinds))?;
    }
}
