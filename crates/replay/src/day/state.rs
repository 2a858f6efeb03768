//! What the server would answer now, and the server that does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::time::sleep;
use tower_service::Service;

/// How often the answer of each read has changed.
#[derive(Debug, Default)]
pub(super) struct State {
    versions: Mutex<HashMap<u128, u64>>,
    pub(super) executions: AtomicU64,
}

/// A server for one call.
#[derive(Debug, Clone)]
pub(super) struct Server(Arc<Executed>);

#[derive(Debug)]
pub(super) struct Executed {
    pub(super) state: Arc<State>,
    pub(super) key: u128,
    pub(super) takes: Duration,
    pub(super) error: bool,
    /// What changes when the call succeeds.
    pub(super) changes: Vec<u128>,
    pub(super) ran: AtomicBool,
}

impl State {
    /// Returns what executing a call of this key would answer now.
    pub(super) fn answer(&self, key: u128) -> String {
        let version = self.versions.lock().get(&key).copied().unwrap_or(0);
        format!("{key:032x} {version}")
    }

    pub(super) fn change(&self, key: u128) {
        *self.versions.lock().entry(key).or_default() += 1;
    }
}

impl Server {
    pub(super) fn new(executed: Executed) -> Self {
        Self(Arc::new(executed))
    }

    /// Says whether the call came through to the server.
    pub(super) fn ran(&self) -> bool {
        self.0.ran.load(Ordering::Relaxed)
    }
}

impl Service<ToolCall> for Server {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    /// Reads the state at once, and changes it at the end.
    fn call(&mut self, _: ToolCall) -> Self::Future {
        let this = self.0.clone();
        this.ran.store(true, Ordering::Relaxed);
        this.state.executions.fetch_add(1, Ordering::Relaxed);
        let answer = this.state.answer(this.key);
        Box::pin(async move {
            sleep(this.takes).await;
            if this.error {
                return Ok(ToolOutput::error_text("recorded as a failure"));
            }
            for key in &this.changes {
                this.state.change(*key);
            }
            Ok(ToolOutput::text(answer))
        })
    }
}
