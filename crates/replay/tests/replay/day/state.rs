//! The state of the server, and the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use callward_core::{BoxFuture, ToolCall, ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::time::sleep;
use tower_service::Service;

/// The number of changes of each read's answer.
#[derive(Debug, Default)]
pub(crate) struct State {
    versions: Mutex<HashMap<u128, u64>>,
    pub(crate) executions: AtomicU64,
}

/// A server for one call.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Executed>);

#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) state: Arc<State>,
    pub(crate) key: u128,
    pub(crate) takes: Duration,
    pub(crate) error: bool,
    /// The reads that change when the call succeeds.
    pub(crate) changes: Vec<u128>,
    pub(crate) ran: AtomicBool,
}

impl State {
    /// Returns the current answer to a call with this key.
    pub(crate) fn answer(&self, key: u128) -> String {
        let version = self.versions.lock().get(&key).copied().unwrap_or(0);
        format!("{key:032x} {version}")
    }

    pub(crate) fn change(&self, key: u128) {
        *self.versions.lock().entry(key).or_default() += 1;
    }
}

impl Server {
    pub(crate) fn new(executed: Executed) -> Self {
        Self(Arc::new(executed))
    }

    /// Returns `true` if the call reached the server.
    pub(crate) fn ran(&self) -> bool {
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

    /// Reads the state at the start and changes it at the end.
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
