//! One run: calls come whether or not earlier ones were answered.

use std::sync::Arc;

use callward::{Caller, Principal, SessionId, Tool, ToolCall};
use callward_testkit::tool;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::figures::{Figures, Tally};
use crate::policies::{Front, Policy, SET};
use crate::world::{LENGTH, OFFERED, SERVERS, Scenario, Simulated, TURN, arguments};

/// Runs all of it on a paused clock. The seed decides everything: when calls come, from which
/// client, and what they take is the same for all policies.
pub(crate) fn run(scenario: Scenario, policy: Policy, seed: u64) -> Figures {
    // what strategies draw
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let tally = runtime.block_on(drive(scenario, policy, seed));
    Figures::of(tally)
}

async fn drive(scenario: Scenario, policy: Policy, seed: u64) -> Tally {
    let tally = &Arc::new(Mutex::new(Tally::new()));
    let servers = Simulated::all(scenario, tally);
    let front = Front::new(policy, servers);
    let epoch = Instant::now();
    let tools = ["get_item", "get_report"].map(read);
    let mut chance = fastrand::Rng::with_seed(seed);
    let callers: Vec<_> = (0..SERVERS * SESSIONS).map(caller).collect();
    let mut calls = JoinSet::new();
    let mut at = 0.0;
    let mut joined = false;
    loop {
        at += -(1.0 - chance.f64()).ln() / OFFERED;
        let due = std::time::Duration::from_secs_f64(at);
        if due >= LENGTH {
            break;
        }
        sleep_until(epoch + due).await;
        let now = epoch.elapsed();
        if now >= TURN && !joined {
            joined = true;
            front.admit(now);
        }
        let (second, work) = scenario.draw(&mut chance);
        let caller = callers[chance.usize(..callers.len())].clone();
        let [first_tool, second_tool] = &tools;
        let tool = if second { second_tool } else { first_tool };
        let call = ToolCall::new(tool.clone(), arguments(work)).with_caller(caller);
        let answer = front.call(call, now);
        let tally = tally.clone();
        calls.spawn(async move {
            let answered = answer.await.is_ok_and(|output| !output.is_error());
            tally.lock().done(now, epoch.elapsed(), answered);
        });
        while calls.try_join_next().is_some() {}
    }
    while calls.join_next().await.is_some() {}
    std::mem::take(&mut *tally.lock())
}

/// A read that says it takes so long that an attempt is given up after five seconds.
fn read(name: &str) -> Arc<Tool> {
    let tool = tool(name).set(SET).read_only();
    tool.hint(|hints| hints.estimated_duration = Some(500.0))
        .build()
}

fn caller(number: usize) -> Arc<Caller> {
    let session = SessionId::new(format!("session-{number}"));
    let caller = Caller::new(Principal::new(format!("client-{number}")));
    Arc::new(caller.with_session(session))
}

/// Sessions for each server.
const SESSIONS: usize = 20;
