//! The trail of a call that ended, from its record.

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
        let unwritten = Unwritten::of(tool, applied, facts, result);
        Self {
            decisions: unwritten.among(&facts.decisions).cloned().collect(),
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
        let unwritten = Unwritten::of(tool, applied, facts, result);
        line(unwritten.among(&facts.decisions), facts.left_out)
    }
}

/// The decisions that no layer writes down.
struct Unwritten {
    plan: [Decision; 2],
    cache: Option<Decision>,
    answer: Decision,
}

impl Unwritten {
    fn of(
        tool: &Tool,
        applied: Applied,
        facts: &CallFacts,
        result: Option<&Result<ToolOutput, ToolError>>,
    ) -> Self {
        let (bypass, scope) = (facts.cache_bypass, facts.cache_scope.as_deref());
        Self {
            plan: from_plan(tool, applied),
            cache: Decision::of_cache(facts.cache, bypass, facts.cache_age, scope),
            answer: answer(result),
        }
    }

    /// Returns all decisions, those of the layers among them, in the order of the trail.
    fn among<'a>(&'a self, log: &'a [Decision]) -> impl Iterator<Item = &'a Decision> {
        let (before, after) = (log.iter(), log.iter());
        let before = before.filter(|decision| decision.stage < Stage::Cache);
        let after = after.filter(|decision| decision.stage >= Stage::Cache);
        let all = self.plan.iter().chain(before).chain(&self.cache);
        all.chain(after).chain([&self.answer])
    }
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
