//! A naive client: it retries every failure of every tool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callward::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolServer};
use callward_chaos::ChaosServer;

/// How often each call is tried.
pub(super) const ATTEMPTS: u32 = 3;
/// How long one attempt may take: as long as with the stack.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the first retry; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls servers in turn, and retries any error.
pub(super) struct Naive {
    servers: Vec<ChaosServer>,
    next: AtomicUsize,
}

impl Naive {
    pub(super) fn new(servers: Vec<ChaosServer>) -> Self {
        Self {
            servers,
            next: AtomicUsize::new(0),
        }
    }

    pub(super) async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let mut pause = PAUSE;
        for _ in 1..ATTEMPTS {
            match self.attempt(call.clone()).await {
                Ok(output) => return Ok(output),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
        self.attempt(call).await
    }

    async fn attempt(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let late = || ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer in time");
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.servers.len().max(1);
        let server = self.servers.get(turn).ok_or_else(late)?;
        let answer = tokio::time::timeout(TIMEOUT, server.call(call)).await;
        answer.unwrap_or_else(|_| Err(late()))
    }
}
