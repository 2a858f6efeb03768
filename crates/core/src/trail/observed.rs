//! The trail of a call that ended, from its record.

use super::show::line;
use super::{Decision, Stage, Tense, Trail, Verdict, from_plan};
use crate::refine::Applied;
use crate::{CallRecord, Tool, ToolCall, ToolError, ToolOutput};

impl Trail {
    /// Makes the trail of a call that was made, from its record and its result: `None` if it was
    /// given up before it ended. The layers write into a record of
    /// [`CallRecord::new`](crate::CallRecord::new), and less into one
    /// [for counting](crate::CallRecord::for_counting).
    pub fn observed(
        call: &ToolCall,
        record: &CallRecord,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        Self::observed_of(call.tool(), call.applied(), record, result)
    }

    /// As [`observed`](Self::observed), from the tool and the selected plan in place of the call.
    pub fn observed_of(
        tool: &Tool,
        applied: Applied,
        record: &CallRecord,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        let (decisions, left_out) = decisions(tool, applied, record, result);
        Self {
            decisions,
            left_out,
            ..Self::start(Tense::Observed, tool, applied)
        }
    }

    /// Returns [`to_line`](Self::to_line) of [`observed_of`](Self::observed_of), without what a
    /// line does not show.
    pub fn observed_line(
        tool: &Tool,
        applied: Applied,
        record: &CallRecord,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> String {
        let (decisions, left_out) = decisions(tool, applied, record, result);
        line(&decisions, left_out)
    }
}

/// What was decided, in the order of the trail, and how many decisions are not kept.
fn decisions(
    tool: &Tool,
    applied: Applied,
    record: &CallRecord,
    result: Option<&Result<ToolOutput, ToolError>>,
) -> (Vec<Decision>, u32) {
    let (mut log, left_out) = record.decisions();
    // and four that no layer writes down: plan, confirmation, cache, answer
    let mut decided = Vec::with_capacity(log.len() + 4);
    decided.extend(from_plan(tool, applied));
    decided.extend(log.extract_if(.., |decision| decision.stage < Stage::Cache));
    let (status, bypass) = (record.cache(), record.cache_bypass());
    let cache = Decision::of_cache(status, bypass, record.cache_age(), record.cache_scope());
    decided.extend(cache);
    decided.extend(log);
    decided.push(answer(result));
    (decided, left_out)
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
