//! A naive client: it retries every failure of every tool.

use std::cell::Cell;
use std::time::Duration;

use callward::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput, ToolServer};
use callward_chaos::ChaosServer;

/// How often each call is tried.
pub(super) const ATTEMPTS: u32 = 3;
/// How long one attempt may take: as long as with the stack.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before the first retry; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls the next server in turn, and retries any error.
pub(super) async fn call(
    servers: &[ChaosServer],
    turn: &Cell<usize>,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let late = || ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer in time");
    let mut pause = PAUSE;
    for attempt in 1.. {
        let server = servers.get(turn.get() % servers.len().max(1));
        turn.set(turn.get() + 1);
        let answer = tokio::time::timeout(TIMEOUT, server.ok_or_else(late)?.call(call.clone()));
        let answer = answer.await.unwrap_or_else(|_| Err(late()));
        if answer.is_ok() || attempt == ATTEMPTS {
            return answer;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Err(late())
}
