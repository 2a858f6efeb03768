//! What 10,000 pending requests cost: to make one more, and to list them as the gateway does.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::time::Duration;

use callward_approval::{ApprovalConfig, Approvals, Asked, Decision, LocalStore, Request, State};
use callward_core::{Effect, Principal, ToolCall};
use callward_testkit::tool;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

const COUNT: usize = 10_000;

fn asked(number: usize) -> Asked {
    let call = ToolCall::new(
        tool("wipe").destructive().build(),
        json!({ "number": number, "path": "/srv/data" }).to_string(),
    );
    let mut asked = Asked::of(&call, "the call is destructive").unwrap();
    asked.principal = Principal::new(format!("agent-{}", number % 200));
    asked
}

/// As the gateway shows a request, or nearly.
#[derive(Serialize)]
struct Summary<'a> {
    id: &'a str,
    state: State,
    set: &'a str,
    tool: &'a str,
    principal: &'a str,
    effect: Effect,
    reason: &'a str,
    arguments_digest: &'a str,
    created: String,
    expires: String,
    decision: Option<&'a Decision>,
}

fn summary(request: &Request) -> Summary<'_> {
    let time = |ms: u64| {
        let time = std::time::UNIX_EPOCH + Duration::from_millis(ms);
        humantime::format_rfc3339_seconds(time).to_string()
    };
    let asked = &request.asked;
    Summary {
        id: request.id.as_str(),
        state: request.state,
        set: asked.set.as_str(),
        tool: asked.tool.as_str(),
        principal: asked.principal.as_str(),
        effect: asked.effect,
        reason: &asked.reason,
        arguments_digest: &asked.arguments_digest,
        created: time(request.created_ms),
        expires: time(request.expires_ms),
        decision: request.decision.as_ref(),
    }
}

/// The shortest of some tries.
async fn least(what: &str, mut run: impl AsyncFnMut()) {
    let mut least = Duration::MAX;
    for _ in 0..20 {
        let began = Instant::now();
        run().await;
        least = least.min(began.elapsed());
    }
    println!("{what}: {least:?}");
}

#[tokio::main]
async fn main() {
    let mut config = ApprovalConfig::default();
    config.pending = 2 * COUNT;
    let approvals = Approvals::open(LocalStore::default(), config);
    let approvals = approvals.await.unwrap();
    let began = Instant::now();
    for number in 0..COUNT {
        approvals.request(asked(number)).await.unwrap();
    }
    println!("each of {COUNT} requests: {:?}", began.elapsed() / 10_000);
    let mut number = COUNT;
    least("one more", async || {
        number += 1;
        approvals.request(asked(number)).await.unwrap();
    })
    .await;
    least("list", async || drop(approvals.list().await.unwrap())).await;
    least("list and write", async || {
        let mut all = approvals.list().await.unwrap();
        all.sort_by_key(|request| request.state as u8);
        let shown: Vec<_> = all.iter().map(|request| summary(request)).collect();
        drop(serde_json::to_vec(&shown).unwrap());
    })
    .await;
}
