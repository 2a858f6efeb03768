//! The trail of a call that ended, from what the layers wrote down.

use super::{Decision, Stage, Tense, Trail, Verdict, from_plan};
use crate::refine::Applied;
use crate::{CallRecord, Tool, ToolCall, ToolError, ToolOutput};

impl Trail {
    /// Tells what happened to a call, from its record and its result; `None` stands for a call that
    /// was given up before it ended. The layers write into a record of
    /// [`CallRecord::new`](crate::CallRecord::new), and less into one
    /// [for counting](crate::CallRecord::for_counting).
    #[must_use]
    pub fn observed(
        call: &ToolCall,
        record: &CallRecord,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        Self::observed_of(call.tool(), call.applied(), record, result)
    }

    /// Does as [`observed`](Self::observed), for who kept of the call only which tool it was and which
    /// of its plans applied.
    #[must_use]
    pub fn observed_of(
        tool: &Tool,
        applied: Applied,
        record: &CallRecord,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        let mut trail = Self::start(Tense::Observed, tool, applied);
        let (log, left_out) = record.decisions();
        let (before, after): (Vec<_>, Vec<_>) = log
            .into_iter()
            .partition(|decision| decision.stage < Stage::Cache);
        let [plan, confirm] = from_plan(tool, applied);
        trail.push(plan);
        // who asked, or did not, knows better than the plan
        if !before.iter().any(|told| told.stage == Stage::Confirm) {
            trail.push(confirm);
        }
        trail.decisions.extend(before);
        trail.decisions.extend(cache(record));
        trail.decisions.extend(after);
        trail.push(answer(result));
        trail.left_out = left_out;
        trail
    }
}

/// What the cache did; nothing where it was not asked and nobody says why.
fn cache(record: &CallRecord) -> Option<Decision> {
    Decision::of_cache(
        record.cache(),
        record.cache_bypass(),
        record.cache_age(),
        record.cache_scope(),
    )
}

fn answer(result: Option<&Result<ToolOutput, ToolError>>) -> Decision {
    let of = |verdict, reason: String| Decision::new(Stage::Answer, verdict, reason);
    match result {
        None => of(Verdict::Cancelled, String::new()),
        Some(Ok(output)) if output.is_error() => of(Verdict::ToolError, String::new()),
        Some(Ok(_)) => of(Verdict::Answered, String::new()),
        // a message may quote what a server said
        Some(Err(error)) => of(
            Verdict::Failed,
            format!("{}, delivery {}", error.kind(), error.delivery()),
        ),
    }
}
