//! The state that ended writes may still change, and why: for display.

use std::collections::BTreeMap;
use std::time::Duration;

use callward_core::{ReplicaSetId, ToolError, ToolName, ToolOutput};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use crate::stats::millis;
use crate::tools::Record;

/// State that a write which has ended may still change. Reads of it are neither served from the
/// cache nor kept meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnsettledState {
    /// The state, as the tool's rule names it: by templates, without any argument.
    pub state: String,
    /// The replica set of the write that ended last.
    pub set: ReplicaSetId,
    /// Its tool, as its server calls it.
    pub tool: ToolName,
    /// Its outcome: the name of the error, `tool_error`, `repeated` if it has a result but was sent
    /// more than once, or `dropped` if its caller left.
    pub reason: &'static str,
    /// How long the state has been unsettled, in milliseconds.
    #[serde(rename = "age_ms", serialize_with = "millis")]
    pub age: Duration,
    /// For how much longer, in milliseconds, unless another write extends it.
    #[serde(rename = "left_ms", serialize_with = "millis")]
    pub left: Duration,
}

/// All unsettled state, by name. There are as many names as rules and groups.
#[derive(Debug, Default)]
pub(crate) struct AllUnsettled(Mutex<BTreeMap<String, Unsettled>>);

#[derive(Debug)]
struct Unsettled {
    set: ReplicaSetId,
    tool: ToolName,
    reason: &'static str,
    since: Instant,
    until: Instant,
}

impl AllUnsettled {
    /// Notes that state is unsettled from now on; logs it if it was settled before.
    pub(crate) fn note(
        &self,
        state: String,
        record: &Record,
        result: Option<&Result<ToolOutput, ToolError>>,
        now: Instant,
        unsettled: Duration,
    ) {
        let reason = reason(result);
        let (set, tool) = (record.set.clone(), record.tool.clone());
        let mut all = self.0.lock();
        all.retain(|_, known| now < known.until);
        let known = all.get(&state).map(|known| (known.since, known.until));
        let (since, until) = known.unwrap_or_else(|| {
            let seconds = unsettled.as_secs_f64();
            tracing::info!(
                %set, %tool, reason, seconds,
                "a write may still take effect; until it settles, nothing that reads {state} is cached",
            );
            (now, now)
        });
        let until = until.max(now + unsettled);
        let last = Unsettled {
            set,
            tool,
            reason,
            since,
            until,
        };
        all.insert(state, last);
    }

    /// Returns the unsettled state, by name.
    pub(crate) fn list(&self, now: Instant) -> Vec<UnsettledState> {
        let all = self.0.lock();
        let all = all.iter().filter(|(_, known)| now < known.until);
        all.map(|(state, known)| UnsettledState {
            state: state.clone(),
            set: known.set.clone(),
            tool: known.tool.clone(),
            reason: known.reason,
            age: now.saturating_duration_since(known.since),
            left: known.until.saturating_duration_since(now),
        })
        .collect()
    }
}

/// Returns the name of the reason why a write may still land.
fn reason(result: Option<&Result<ToolOutput, ToolError>>) -> &'static str {
    match result {
        None => "dropped",
        Some(Ok(output)) if output.is_error() => "tool_error",
        Some(Ok(_)) => "repeated",
        Some(Err(error)) => error.kind.as_str(),
    }
}
