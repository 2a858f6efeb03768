//! How long a call may wait in a queue.

use callward_core::ToolCall;
use tokio::time::Instant;

/// Returns when a call must be sent at the latest to end before its deadline, by its tool's usual
/// duration. `None` without a deadline.
pub(crate) fn latest_start(call: &ToolCall) -> Option<Instant> {
    let deadline = call.deadline?;
    let usual = call.plan().limits.estimated_duration.unwrap_or_default();
    Some(
        deadline
            .checked_sub(usual)
            .map_or_else(Instant::now, Instant::from_std),
    )
}
