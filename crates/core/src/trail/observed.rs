//! The trail of a call that ended, from its record.

use std::borrow::Cow;

use super::show::line;
use super::{CallFacts, Decision, Stage, Tense, Trail, Verdict, from_plan};
use crate::refine::Applied;
use crate::{Tool, ToolError, ToolOutput};

impl Trail {
    /// Makes the trail of a call that was made, from its tool, the plan that applied, what its
    /// record knows and its result: `None` if it was given up before it ended. The layers write
    /// into a record of [`CallRecord::new`](super::CallRecord::new), and less into one
    /// [for counting](super::CallRecord::for_counting).
    pub fn observed(
        tool: &Tool,
        applied: Applied,
        facts: &CallFacts,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        let all = all(tool, applied, facts, result);
        Self {
            decisions: all.map(Cow::into_owned).collect(),
            left_out: facts.left_out,
            ..Self::start(Tense::Observed, tool, applied)
        }
    }

    /// Returns [`to_line`](Self::to_line) of [`observed`](Self::observed), without what a line does
    /// not show.
    pub fn observed_line(
        tool: &Tool,
        applied: Applied,
        facts: &CallFacts,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> String {
        line(all(tool, applied, facts, result), facts.left_out)
    }
}

/// Returns all decisions in the order of the trail: those that the layers wrote down, and those
/// that no layer does.
fn all<'a>(
    tool: &Tool,
    applied: Applied,
    facts: &'a CallFacts,
    result: Option<&Result<ToolOutput, ToolError>>,
) -> impl Iterator<Item = Cow<'a, Decision>> {
    let (bypass, scope) = (facts.cache_bypass, facts.cache_scope.as_deref());
    let cache = Decision::of_cache(facts.cache, bypass, facts.cache_age, scope);
    let (before, after) = (facts.decisions.iter(), facts.decisions.iter());
    let before = before.filter(|decision| decision.stage < Stage::Cache);
    let after = after.filter(|decision| decision.stage >= Stage::Cache);
    let plan = from_plan(tool, applied).into_iter().map(Cow::Owned);
    plan.chain(before.map(Cow::Borrowed))
        .chain(cache.map(Cow::Owned))
        .chain(after.map(Cow::Borrowed))
        .chain([Cow::Owned(answer(result))])
}

fn answer(result: Option<&Result<ToolOutput, ToolError>>) -> Decision {
    let (verdict, reason) = match result {
        None => (Verdict::Cancelled, String::new()),
        Some(Ok(output)) if output.is_error() => (Verdict::ToolError, String::new()),
        Some(Ok(_)) => (Verdict::Answered, String::new()),
        // a message may quote what a server said
        Some(Err(error)) => {
            let reason = format!("{}, delivery {}", error.kind, error.delivery);
            (Verdict::Failed, reason)
        }
    };
    Decision::new(Stage::Answer, verdict, reason)
}
