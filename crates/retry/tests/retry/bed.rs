//! Servers that follow a script, and calls of them.

use std::sync::Arc;
use std::time::Duration;

use callward_core::{
    CallPlan, Delivery, ErrorKind, Profile, RetryRule, ServerId, Tool, ToolCall, ToolError,
    ToolOutput,
};
use callward_retry::{Backoff, Jitter, RetryConfig, RetryLayer};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_layer::Layer;

pub(crate) type Output = Result<ToolOutput, ToolError>;

/// Reads a result: `ok`, `failed` as the tool reports it, or a kind with its delivery (`-` not
/// sent, `?` unknown, `!` answered), the server after `:`, and a `Retry-After` in ms after `@`.
pub(crate) fn result(word: &str) -> Output {
    match word {
        "ok" => return Ok(ToolOutput::text("done")),
        "failed" => return Ok(ToolOutput::error_text("no such order")),
        _ => {}
    }
    let (word, stated) = word.split_once('@').unwrap_or((word, ""));
    let (word, server) = word.split_once(':').unwrap_or((word, ""));
    let (kind, delivery) = word.split_at(word.len() - 1);
    let delivery = match delivery {
        "-" => Delivery::NotSent,
        "?" => Delivery::Unknown,
        "!" => Delivery::Answered,
        other => panic!("{other} is not a delivery"),
    };
    let kind: ErrorKind = serde_json::from_value(kind.into()).unwrap();
    let mut error = ToolError::new(kind, delivery, "scripted");
    if !stated.is_empty() {
        error = error.with_retry_after(ms(stated.parse().unwrap()));
    }
    if !server.is_empty() {
        error = error.with_server(ServerId::new(server).unwrap());
    }
    Err(error)
}

/// A server whose n-th attempt has the n-th of these results; the last one repeats.
pub(crate) fn scripted(words: &str) -> MockService {
    let results: Vec<_> = words.split_whitespace().map(result).collect();
    MockService::new(move |_, n| {
        let result = results.get(n - 1).or_else(|| results.last());
        std::future::ready(result.unwrap().clone())
    })
}

/// How a call went.
pub(crate) struct Run {
    /// When each attempt began, in milliseconds.
    pub(crate) begins: Vec<u128>,
    pub(crate) took: Duration,
    pub(crate) result: Output,
}

/// Sends a call to a server with this script.
pub(crate) async fn run(layer: &RetryLayer, call: ToolCall, words: &str) -> Run {
    let (start, begins) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let (inner, noted) = (scripted(words), begins.clone());
    let server = MockService::new(move |call, _| {
        noted.lock().push(start.elapsed().as_millis());
        inner.clone().oneshot(call)
    });
    let result = layer.layer(server).oneshot(call).await;
    Run {
        begins: begins.lock().clone(),
        took: start.elapsed(),
        result,
    }
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The default settings with this change.
pub(crate) fn with(change: impl FnOnce(&mut RetryConfig)) -> RetryConfig {
    let mut config = RetryConfig::default();
    change(&mut config);
    config
}

/// Pauses are known: 100 ms, 200 ms, and so on.
pub(crate) fn plain(change: impl FnOnce(&mut RetryConfig)) -> RetryConfig {
    with(|config| {
        config.backoff = Backoff::new(Jitter::None, ms(10_000));
        change(config);
    })
}

/// Only this many retries are ever paid for.
pub(crate) fn reserve(config: &mut RetryConfig, retries: u32) {
    (config.budget_percent, config.budget_reserve) = (0, retries);
}

/// A call has this many attempts, and the budget pays for all.
pub(crate) fn attempts(config: &mut RetryConfig, attempts: u32) {
    (config.max_attempts, config.budget_reserve) = (attempts, 100);
}

pub(crate) fn layer(config: RetryConfig) -> RetryLayer {
    RetryLayer::new(config).unwrap()
}

/// A tool by its name: `read`, `set` (idempotent), `delete`, `pay`, or `transfer`, which goes
/// elsewhere while it certainly was not sent.
pub(crate) fn named(name: &str) -> Arc<Tool> {
    let tool = tool(name);
    match name {
        "read" => tool.read_only().build(),
        "set" => tool.idempotent().build(),
        "delete" => tool.destructive().build(),
        "transfer" => {
            let write = tool.build();
            let mut plan = CallPlan::derive(&write.resolved, &Profile::standard());
            plan.retry = RetryRule::OnlyUnsent;
            let (set, definition) = (write.set().clone(), write.definition.clone());
            Arc::new(Tool::new(set, definition, write.resolved.clone(), plan))
        }
        _ => tool.build(),
    }
}

pub(crate) fn of(name: &str) -> ToolCall {
    call(&named(name), json!({}))
}

pub(crate) fn read() -> ToolCall {
    of("read")
}

/// Gives a call this long.
pub(crate) fn within(limit: Duration, call: ToolCall) -> ToolCall {
    call.with_deadline((Instant::now() + limit).into_std())
}

pub(crate) fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Returns the cells of a table: its columns are at least two spaces apart.
pub(crate) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.skip(1).map(|line| {
        let cells = line.split("  ").map(str::trim);
        let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.try_into().unwrap()
    })
}
