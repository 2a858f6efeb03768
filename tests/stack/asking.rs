//! What a call gets whose client is asked something belongs to it alone, and it is asked once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::core::OutputStatus;
use callward::retry::hedge::HedgeConfig;
use callward::{Delivery, ErrorKind, FreshnessMode, Stack, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockClient, MockServer, MockService};
use proptest::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bed::{failure, in_set, paused, read, tool};

/// Reads before the others, so that it is known when one is slow.
const KNOWN: usize = 20;

#[derive(Debug, Clone, Copy)]
enum End {
    Answers,
    AsksByItsResult,
    Fails,
}

/// What a server does with one call: it asks between the two times, or not at all.
#[derive(Debug, Clone)]
struct Fate {
    times: (u64, u64),
    asks: bool,
    end: End,
}

fn fate() -> impl Strategy<Value = Fate> {
    const ENDS: [End; 4] = [End::Answers, End::Answers, End::AsksByItsResult, End::Fails];
    let end = proptest::sample::select(&ENDS[..]);
    let times = (0..5_u64, 0..5_u64);
    (times, any::<bool>(), end).prop_map(|(times, asks, end)| Fate { times, asks, end })
}

impl Fate {
    /// Each answer has the number of the run.
    async fn run(self, call: ToolCall, n: usize) -> Result<ToolOutput, ToolError> {
        sleep(Duration::from_millis(self.times.0 * 7)).await;
        if self.asks {
            MockClient::ask(&call, "").await;
        }
        sleep(Duration::from_millis(self.times.1 * 7)).await;
        let content = json!([{"type": "text", "text": n.to_string()}]);
        let kind = match self.end {
            End::Answers => "complete",
            End::AsksByItsResult => "input_required",
            End::Fails => return Err(failure(ErrorKind::ConnectionLost, Delivery::Unknown)),
        };
        let output = json!({"resultType": kind, "content": content});
        Ok(ToolOutput::from_json(output.to_string()).unwrap())
    }
}

/// Makes calls, each some time after the one before, with or without a client that may be asked.
async fn check(fates: Vec<Fate>, calls: Vec<(u64, &str, bool)>) -> Result<(), TestCaseError> {
    let runs = Arc::new(AtomicUsize::new(0));
    let servers = ["a", "b"].map(|id| {
        let (runs, fates) = (runs.clone(), fates.clone());
        let service = MockService::new(move |call, _| {
            let n = runs.fetch_add(1, Ordering::SeqCst);
            let known = Fate {
                times: (0, 0),
                asks: false,
                end: End::Answers,
            };
            let fate = n.checked_sub(KNOWN).map(|n| fates[n % fates.len()].clone());
            fate.unwrap_or(known).run(call, n)
        });
        let idempotent = json!({"idempotentHint": true, "destructiveHint": false});
        MockServer::new(id, vec![read("read"), tool("set", idempotent)], service)
    });
    let builder = Stack::builder()
        .freshness(FreshnessMode::Fixed)
        .hedge(HedgeConfig::default());
    let stack = in_set(builder, &servers, |_, server| server).await;
    for n in 0..KNOWN {
        stack.call("set.read", json!({"n": n})).await.unwrap();
    }
    let mut running = JoinSet::new();
    for (after, tool, has_client) in calls {
        sleep(Duration::from_millis(after * 5)).await;
        let (client, mut call) = MockClient::make(stack.prepare(tool, "{}").unwrap());
        if !has_client {
            call.context_mut().client = None;
        }
        let stack = stack.clone();
        running.spawn(async move { (client, stack.run(call).await) });
    }
    let (mut received, mut alone) = (BTreeMap::<String, usize>::new(), Vec::new());
    for (client, answer) in running.join_all().await {
        let questions = client.questions().len();
        prop_assert!(questions <= 1, "{} questions", questions);
        if let Ok(output) = answer {
            let by_result = output.status() == OutputStatus::InputRequired;
            *received.entry(output.to_text()).or_default() += 1;
            if questions > 0 || by_result {
                alone.push(output.to_text());
            }
        }
    }
    for text in alone {
        prop_assert_eq!(received[&text], 1, "of run {}", text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn what_a_call_that_asked_gets_belongs_to_it_alone(
        fates in proptest::collection::vec(fate(), 1..20),
        calls in proptest::collection::vec(
            (0..8_u64, proptest::sample::select(vec!["set.read", "set.set"]), any::<bool>()),
            1..40,
        ),
    ) {
        paused().block_on(check(fates, calls))?;
    }
}
