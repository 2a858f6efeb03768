//! The decision trail: everything that was decided about one call, in one place.
//!
//! One structure describes what would happen to a call ([`Tense::Expected`], before anything is
//! sent) and what happened ([`Tense::Observed`], from what the layers wrote into its
//! [`CallRecord`]). Tables, spans and the `_meta` of results show this structure, so they cannot
//! contradict each other.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::refine::Applied;
use crate::resolve::Provenance;
use crate::{CallPlan, ConfirmRule, Effect, ReplicaSetId, Resolved, Tool, ToolName};

mod decision;
mod observed;
mod record;
mod show;
mod verdict;

pub use self::decision::Decision;
pub use self::record::{
    AttemptRecord, Authorization, CacheStatus, CallFacts, CallRecord, HedgeStatus,
};
pub use self::verdict::{Stage, Verdict};

/// The key in the `_meta` of a request that asks for the trail, and in that of its answer that has
/// it.
pub const TRAIL_META: &str = "io.callward/trail";

words! {
    /// Whether a trail describes what would happen, or what did.
    #[expect(clippy::exhaustive_enums, reason = "the vocabulary is closed")]
    Tense {
        /// What would happen to the call if it were sent now.
        Expected = "expected",
        /// What happened to it.
        Observed = "observed",
    }
}

/// All decisions about one call, in order.
///
/// Decisions of the call as a whole come first (plan, confirmation, audit, cache), then those of
/// its attempts as they were made, then what the caller got. Nothing of a trail holds arguments or
/// results.
///
/// # As JSON
///
/// ```
/// # use callward_core::{Annotations, CallPlan, Profile, ReplicaSetId, Resolved, Source};
/// # use callward_core::{Tool, ToolDefinition};
/// use callward_core::refine::Applied;
/// use callward_core::trail::{Decision, Stage, Trail, Verdict};
/// # let listed = br#"{"name":"read_order","inputSchema":{"type":"object"}}"#;
/// # let definition = ToolDefinition::from_json(bytes::Bytes::from_static(listed))?;
/// # let hints = Annotations::default().with_read_only(true);
/// # let resolved = Resolved::from_single(hints, Source::Declared);
/// # let plan = CallPlan::derive(&resolved, &Profile::standard());
/// # let tool = Tool::new(ReplicaSetId::new("orders")?, definition, resolved, plan);
///
/// let mut trail = Trail::expected(&tool, Applied::Tool);
/// trail.decisions.push(Decision::new(Stage::Cache, Verdict::LookUp, ""));
/// assert_eq!(
///     serde_json::to_value(&trail)?,
///     serde_json::json!({
///         "tense": "expected",
///         "set": "orders",
///         "tool": "read_order",
///         "annotations": "readOnlyHint=true (declared)",
///         "effect": "read_only",
///         "plan": {
///             "route": "any healthy server",
///             "cache": "kept 300 s",
///             "retry": "yes, when the failure may pass",
///             "attempt_timeout_ms": 60000,
///         },
///         "decisions": [
///             {"stage": "plan", "verdict": "read_only", "reason": "declared, the server says so"},
///             {"stage": "confirm", "verdict": "skip"},
///             {"stage": "cache", "verdict": "look_up"},
///         ],
///     })
/// );
/// assert_eq!(
///     trail.to_line(),
///     "plan:read_only (declared, the server says so); confirm:skip; cache:look_up"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trail {
    /// Whether it describes what would happen, or what did.
    pub tense: Tense,
    /// The replica set.
    pub set: ReplicaSetId,
    /// The tool, as its server calls it.
    pub tool: ToolName,
    /// The effective hints, each with its value and source.
    pub annotations: String,
    /// What the call may do to the world.
    pub effect: Effect,
    /// What that means for its way through the stack.
    pub plan: PlanSummary,
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// How many decisions are left out, because there were too many of their stage.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: u32,
}

/// The rules of a plan, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanSummary {
    /// Which servers may get the call.
    pub route: String,
    /// How the cache treats it.
    pub cache: String,
    /// Whether it may be retried.
    pub retry: String,
    /// How long one attempt may take.
    pub attempt_timeout_ms: u64,
}

impl PlanSummary {
    fn of(plan: &CallPlan) -> Self {
        let timeout = plan.limits.attempt_timeout.as_millis();
        Self {
            route: plan.route.to_string(),
            cache: plan.cache.to_string(),
            retry: plan.retry.to_string(),
            attempt_timeout_ms: u64::try_from(timeout).unwrap_or(u64::MAX),
        }
    }
}

impl Trail {
    /// Starts the trail of what would happen to a call of the tool that gets this one of its plans:
    /// what the plan itself decides is there, and code that knows the layers adds their decisions.
    pub fn expected(tool: &Tool, applied: Applied) -> Self {
        let mut trail = Self::start(Tense::Expected, tool, applied);
        trail.decisions.extend(from_plan(tool, applied));
        let audit = tool.plan_applied(applied).audit;
        // there is no verdict `none`
        let verdict = Verdict::by_name(audit.level.as_str());
        let audited =
            verdict.map(|verdict| Decision::new(Stage::Audit, verdict, audit.to_string()));
        trail.decisions.extend(audited);
        trail
    }

    fn start(tense: Tense, tool: &Tool, applied: Applied) -> Self {
        let plan = tool.plan_applied(applied);
        Self {
            tense,
            set: tool.set().clone(),
            tool: tool.name().clone(),
            annotations: summary(tool.resolved_applied(applied)),
            effect: plan.effect,
            plan: PlanSummary::of(plan),
            decisions: Vec::new(),
            left_out: 0,
        }
    }

    /// Returns the decisions of one stage, in their order.
    pub fn of(&self, stage: Stage) -> impl Iterator<Item = &Decision> {
        self.decisions
            .iter()
            .filter(move |decision| decision.stage == stage)
    }

    /// Returns what one stage decided first, if it did.
    pub fn first(&self, stage: Stage) -> Option<&Decision> {
        self.of(stage).next()
    }
}

/// What the plan decides by itself.
fn from_plan(tool: &Tool, applied: Applied) -> [Decision; 2] {
    let plan = tool.plan_applied(applied);
    // each effect is a verdict too
    let effect = Verdict::by_name(plan.effect.as_str()).unwrap_or(Verdict::Destructive);
    let reason: Cow<'static, str> = match applied {
        Applied::Tool => plan.reason.clone(),
        Applied::Rule(index) => {
            format!("{}, by rule {} over its arguments", plan.reason, index + 1).into()
        }
        Applied::Strictest(doubt) => format!(
            "{}, the strictest of its plans: {}",
            plan.reason,
            tool.refinements.describe(doubt)
        )
        .into(),
    };
    let confirm = match plan.confirm {
        ConfirmRule::Ask => Decision::new(
            Stage::Confirm,
            Verdict::Ask,
            "the plan wants a person to confirm each call",
        ),
        ConfirmRule::Skip => Decision::new(Stage::Confirm, Verdict::Skip, ""),
    };
    [Decision::new(Stage::Plan, effect, reason), confirm]
}

/// The effective hints in a line.
fn summary(resolved: &Resolved) -> String {
    let values = serde_json::to_value(&resolved.annotations).unwrap_or_default();
    let hint = |entry: &Provenance| {
        let field = entry.field.as_str();
        format!("{field}={} ({})", values[field], entry.source)
    };
    let hints: Vec<_> = resolved.provenance.iter().map(hint).collect();
    hints.join(", ")
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
