//! From the hints of a tool to its plan.

use crate::{AnnotationProblem, CallPlan, Hints, Profile, Resolved, Severity, resolve};

/// The result of judging one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Judgement {
    /// What is wrong with the declared hints.
    pub problems: Vec<AnnotationProblem>,
    /// The effective hints.
    pub resolved: Resolved,
    /// The plan for its calls.
    pub plan: CallPlan,
}

impl Judgement {
    /// Returns why a tool with these hints may not be registered; `None` if it may.
    pub fn refusal(&self) -> Option<String> {
        refusal(&self.problems)
    }
}

/// Names the errors among some problems.
pub(crate) fn refusal(problems: &[AnnotationProblem]) -> Option<String> {
    let faults: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity() == Severity::Error)
        .map(ToString::to_string)
        .collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// Checks the declared hints, weighs all sources and derives the plan.
///
/// This is the only way from hints to a tool's own plan: registration uses it, and so does code
/// that predicts the result of a registration. Rules over arguments come on top:
/// [`Refinements::bind`](crate::Refinements::bind). Hints with problems are judged as well; see
/// [`Judgement::refusal`].
///
/// ```
/// use callward_core::infer::{RuleSet, Subject};
/// use callward_core::{Annotations, Effect, Hints, Profile, Trust, judge};
///
/// let inferred = RuleSet::Standard.infer(&Subject::new("delete_user"));
/// let declared = Annotations::default().with_cost(-1.0);
/// let judged = judge(&Hints::new(&inferred, &declared, Trust::Standard), &Profile::standard());
/// assert_eq!(judged.plan.effect, Effect::Destructive);
/// assert_eq!(judged.refusal().as_deref(), Some("costHint is -1, not a number from 0 up"));
/// ```
pub fn judge(hints: &Hints<'_>, profile: &Profile) -> Judgement {
    let resolved = resolve::resolve(hints);
    let plan = CallPlan::derive(&resolved, profile);
    Judgement {
        problems: hints.declared.validate(),
        resolved,
        plan,
    }
}
