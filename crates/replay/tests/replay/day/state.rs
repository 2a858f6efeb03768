//! The state of the server, and the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use callward_core::{ToolError, ToolOutput};
use parking_lot::Mutex;
use tokio::time::sleep;

/// The number of changes of each read's answer.
#[derive(Debug, Default)]
pub(crate) struct State {
    versions: Mutex<HashMap<u128, u64>>,
    pub(crate) executions: AtomicU64,
}

/// One call at its server.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) state: Arc<State>,
    pub(crate) key: u128,
    pub(crate) takes: Duration,
    pub(crate) error: bool,
    /// The reads that change when the call succeeds.
    pub(crate) changes: Vec<u128>,
    /// The call reached the server.
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

impl Executed {
    /// Reads the state at the start and changes it at the end.
    pub(crate) async fn run(self: Arc<Self>) -> Result<ToolOutput, ToolError> {
        self.ran.store(true, Ordering::Relaxed);
        self.state.executions.fetch_add(1, Ordering::Relaxed);
        let answer = self.state.answer(self.key);
        sleep(self.takes).await;
        if self.error {
            return Ok(ToolOutput::error_text("recorded as a failure"));
        }
        self.changes.iter().for_each(|key| self.state.change(*key));
        Ok(ToolOutput::text(answer))
    }
}
