//! How long a call may stand in line.

use callward_core::ToolCall;
use tokio::time::Instant;

/// Returns when a call that waits in line must be sent, so that it ends before its deadline as far as
/// is known how long it takes. `None` if it has no deadline.
///
/// Whoever is sent later than that costs the server work that nobody waits for any more. Time in line
/// uses up nothing else: the attempt's share of the time begins when it is sent.
pub(crate) fn latest_start(call: &ToolCall) -> Option<Instant> {
    let deadline = call.deadline()?;
    let usual = call.plan().limits.estimated_duration.unwrap_or_default();
    Some(
        deadline
            .checked_sub(usual)
            .map_or_else(Instant::now, Instant::from_std),
    )
}
