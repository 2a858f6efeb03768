//! What is served beyond its lifetime, what an answer says of its own, and how both are checked.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod hints;
mod if_error;
mod learned;
mod revalidate;

use std::time::Duration;

use callward_cache::CacheConfig;
use callward_core::{CACHE_META, ToolOutput};
use serde_json::{Value, json};
use tokio::time::advance;

/// As long as the read of these tests is kept.
const TTL: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

fn config(change: impl FnOnce(&mut CacheConfig)) -> CacheConfig {
    let mut config = CacheConfig::default();
    change(&mut config);
    config
}

/// Returns the mark of a cache in an answer's `_meta`; `null` if there is none.
fn mark(output: &ToolOutput) -> Value {
    let body: Value = serde_json::from_slice(output.body()).unwrap_or_default();
    body["_meta"][CACHE_META].clone()
}

fn answer(text: &str) -> ToolOutput {
    ToolOutput::text(text)
}

/// An answer with other members beside its text.
fn with(members: &Value) -> ToolOutput {
    let mut body = json!({"content": [{"type": "text", "text": "a"}]});
    for (name, value) in members.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    ToolOutput::from_json(body.to_string()).unwrap_or_else(|_| answer("broken"))
}

/// Lets the clock run on.
async fn pass(time: Duration) {
    advance(time).await;
}
