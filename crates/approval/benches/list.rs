//! What 10,000 pending requests cost: to make one more, and to list them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::time::Duration;

use callward_approval::{ApprovalConfig, Approvals, Asked, LocalStore};
use callward_core::{Principal, ToolCall};
use callward_testkit::tool;
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
}
