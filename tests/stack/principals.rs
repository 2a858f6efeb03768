//! Principals share no results, unless the cache is configured to share them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use callward::auth::Policy;
use callward::auth::rules::{Rule, Then};
use callward::{
    Caller, ErrorKind, Instances, Principal, Server, SessionId, Stack, ToolCall, ToolOutput,
};
use callward_testkit::{MockServer, MockService};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bed::{paused, read, tool, up, write};

/// The last one may call nothing.
const NAMES: [&str; 4] = ["ada", "bob", "eve", "mallory"];
const TOOLS: [&str; 3] = ["s.read", "s.set", "s.write"];

/// A call after a time: of whom, in which session if in any, and of which tool.
#[derive(Debug, Clone)]
struct Made {
    after: Duration,
    name: usize,
    session: Option<u8>,
    tool: usize,
}

fn made() -> impl Strategy<Value = Made> {
    let session = proptest::option::of(0..2_u8);
    (0..3_u64, 0..NAMES.len(), session, 0..TOOLS.len()).prop_map(|(steps, name, session, tool)| {
        Made {
            after: Duration::from_millis(steps * 4),
            name,
            session,
            tool,
        }
    })
}

impl Made {
    fn caller(&self) -> Arc<Caller> {
        let caller = Caller::new(Principal::new(NAMES[self.name]));
        Arc::new(match self.session {
            Some(session) => caller.with_session(SessionId::new(session.to_string())),
            None => caller,
        })
    }
}

/// Makes calls, some at the same time. Each answer names whom the server ran it for.
async fn check(calls: Vec<Made>, instances: Instances) -> Result<(), TestCaseError> {
    let ran = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = ran.clone();
    let service = MockService::new(move |call: ToolCall, _| {
        let name = call.caller().principal.to_string();
        seen.lock().insert(name.clone());
        async move {
            sleep(Duration::from_millis(5)).await;
            Ok(ToolOutput::text(name))
        }
    });
    let set = tool(
        "set",
        json!({"idempotentHint": true, "destructiveHint": false}),
    );
    let server = MockServer::new("s", vec![read("read"), set, write("write")], service);
    let deny = json!({"principal": ["mallory"], "then": "deny"});
    let deny: Rule = serde_json::from_value(deny).unwrap();
    let builder = Stack::builder().authorize(Policy::new(vec![deny], Then::Allow));
    let added = Server::shared(server.clone()).instances(instances);
    let stack = up(builder.server(added), &[&server]).await;
    let mut running = JoinSet::new();
    for made in calls {
        sleep(made.after).await;
        let call = stack.prepare(TOOLS[made.tool], r#"{"id": 1}"#).unwrap();
        let (stack, call) = (stack.clone(), call.with_caller(made.caller()));
        running.spawn(async move { (made, stack.run(call).await) });
    }
    while let Some(done) = running.join_next().await {
        let (made, answer) = done.unwrap();
        match (NAMES[made.name], answer) {
            ("mallory", Err(error)) => prop_assert_eq!(error.kind, ErrorKind::UnknownTool),
            (name, Ok(output)) => prop_assert_eq!(output.to_text(), name),
            (name, Err(error)) => prop_assert!(false, "{} {}", name, error),
        }
    }
    prop_assert!(!ran.lock().contains("mallory"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_principal_gets_what_was_made_for_another(
        calls in proptest::collection::vec(made(), 1..40),
        instances in proptest::sample::select(vec![Instances::Shared, Instances::Session]),
    ) {
        paused().block_on(check(calls, instances))?;
    }
}
