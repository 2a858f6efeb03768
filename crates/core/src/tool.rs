//! One callable operation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::refine::{Applied, Refinements};
use crate::{
    Annotations, CacheRule, CallPlan, CallStats, ConfirmRule, Instances, InvalidName, Method,
    Profile, ReplicaSetId, Resolved, RetryRule, Source, ToolName,
};

mod definition;
mod overlay;
mod shape;

pub use definition::{InvalidDefinition, ToolDefinition};
pub use overlay::ToolOverlay;

/// Checks the arguments of a tool's calls.
pub trait CheckArguments: fmt::Debug + Send + Sync {
    /// Checks arguments: a raw JSON object.
    ///
    /// # Errors
    ///
    /// Why they do not fit, without their values, which may be secret.
    fn check(&self, arguments: &[u8]) -> Result<(), String>;
}

/// One callable operation of one replica set: definition, verdict and plan.
///
/// Immutable and shared by `Arc`: a changed definition is another `Tool`.
#[must_use]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tool {
    set: ReplicaSetId,
    /// The definition as listed.
    pub definition: ToolDefinition,
    /// The effective hints, each with its source and reason.
    pub resolved: Arc<Resolved>,
    plan: Arc<CallPlan>,
    /// Rules over the arguments. Default: none.
    pub refinements: Refinements,
    /// The read-only tool of the set that shows the effect of a call whose answer was lost, by the
    /// name that clients know it by. Default: none.
    ///
    /// Registration pairs the two, by their names or by what the operator says, and pairs them
    /// again whenever the tools of the set change.
    pub verifier: Option<Arc<str>>,
    /// Checks the arguments of calls before they are sent. Default: none.
    pub argument_check: Option<Arc<dyn CheckArguments>>,
    /// How the state behind the tool is divided among callers. Default: [`Instances::Shared`].
    pub instances: Instances,
    /// Counts the calls of the tool, whatever its definition. Default: none are counted.
    pub stats: Option<Arc<CallStats>>,
    digest: u128,
}

impl Tool {
    /// Creates it from a definition and its judgement.
    pub fn new(
        set: ReplicaSetId,
        definition: ToolDefinition,
        resolved: impl Into<Arc<Resolved>>,
        plan: impl Into<Arc<CallPlan>>,
    ) -> Self {
        let digest = definition.digest();
        Self {
            set,
            definition,
            resolved: resolved.into(),
            plan: plan.into(),
            refinements: Refinements::default(),
            verifier: None,
            argument_check: None,
            digest,
            stats: None,
            instances: Instances::default(),
        }
    }

    /// Makes a tool that changes nothing.
    ///
    /// This and its three siblings make a tool of the replica set `local` for a layer that runs
    /// without a stack. The plan is that of [`Profile::standard`].
    ///
    /// ```
    /// use callward_core::{Effect, Tool, ToolCall};
    ///
    /// let call = ToolCall::new(Tool::read_only("get_rate")?, r#"{"currency":"EUR"}"#);
    /// assert_eq!(call.plan().effect, Effect::ReadOnly);
    /// # Ok::<(), callward_core::InvalidName>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidName`] if the name cannot be that of a tool.
    pub fn read_only(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_read_only(true))
    }

    /// Makes a tool that changes something, and nothing more when an equal call follows.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn idempotent(name: &str) -> Result<Arc<Self>, InvalidName> {
        let hints = Annotations::default().with_destructive(false);
        Self::with_hints(name, hints.with_idempotent(true))
    }

    /// Makes a tool that changes something each time it runs.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn mutating(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_destructive(false))
    }

    /// Makes a tool that may destroy or overwrite something.
    ///
    /// # Errors
    ///
    /// As [`read_only`](Self::read_only).
    pub fn destructive(name: &str) -> Result<Arc<Self>, InvalidName> {
        Self::with_hints(name, Annotations::default().with_destructive(true))
    }

    fn with_hints(name: &str, hints: Annotations) -> Result<Arc<Self>, InvalidName> {
        let set = ReplicaSetId::new("local")?;
        let definition = ToolDefinition::named(ToolName::new(name)?, hints.clone());
        let resolved = Resolved::from_single(hints, Source::Operator);
        let plan = CallPlan::derive(&resolved, &Profile::standard());
        Ok(Arc::new(Self::new(set, definition, resolved, plan)))
    }

    /// Makes the tool whose calls are requests about a task that this one made: the same name and
    /// effect, so that the same rules apply. No answer is kept. To ask for the state of a task is
    /// safe to repeat; nothing else is.
    pub fn of_task(&self, method: Method) -> Self {
        let mut plan = CallPlan::clone(&self.plan);
        plan.cache = match plan.effect.is_write() && method != Method::GetTask {
            true => CacheRule::Invalidate,
            false => CacheRule::Bypass,
        };
        plan.retry = match method {
            Method::GetTask => RetryRule::Safe,
            _ => RetryRule::Never,
        };
        // the call that made the task was confirmed
        plan.confirm = ConfirmRule::Skip;
        let mut definition = self.definition.clone();
        definition.method = method;
        Self {
            definition,
            plan: Arc::new(plan),
            refinements: Refinements::default(),
            verifier: None,
            argument_check: None,
            // a request about a task is not a call of the tool
            stats: None,
            ..self.clone()
        }
    }

    /// Returns the replica set that offers the tool.
    pub fn set(&self) -> &ReplicaSetId {
        &self.set
    }

    /// Returns the tool's name, as its server spells it.
    pub fn name(&self) -> &ToolName {
        &self.definition.name
    }

    /// Returns the tool's own plan. It is that of a call only where no rule says otherwise: a layer
    /// asks the call ([`ToolCall::plan`](crate::ToolCall::plan)).
    pub fn plan(&self) -> &Arc<CallPlan> {
        &self.plan
    }

    /// Returns the plan that applies.
    pub fn plan_applied(&self, applied: Applied) -> &Arc<CallPlan> {
        self.refinements.plan(applied).unwrap_or(&self.plan)
    }

    /// Returns the hints that the plan that applies was derived from.
    pub fn resolved_applied(&self, applied: Applied) -> &Resolved {
        self.refinements.resolved(applied).unwrap_or(&self.resolved)
    }

    /// Returns the digest of the definition: another definition under the same name has another.
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// Counts an attempt that a server answered, or that the attempt timeout ended: then it failed.
    pub fn count_attempt(&self, took: Duration, failed: bool) {
        if let Some(stats) = &self.stats {
            stats.count_attempt(self.version(), took, failed);
        }
    }

    /// Returns the counts of the attempts of this definition with this attempt timeout, if there
    /// are some.
    pub fn attempts(&self) -> Option<Arc<CallStats>> {
        self.stats.as_ref()?.attempts(self.version())
    }

    fn version(&self) -> u64 {
        let timeout = self.plan.limits.attempt_timeout.as_nanos();
        (self.digest ^ timeout) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;

    #[test]
    fn a_tool_made_in_one_line_has_the_plan_of_its_hints() {
        type Make = fn(&str) -> Result<Arc<Tool>, InvalidName>;
        for (make, effect) in [
            (Tool::read_only as Make, Effect::ReadOnly),
            (Tool::idempotent, Effect::Idempotent),
            (Tool::mutating, Effect::Mutating),
            (Tool::destructive, Effect::Destructive),
        ] {
            let tool = make("rate").unwrap();
            assert_eq!((tool.plan().effect, tool.set().as_str()), (effect, "local"));
            assert!(make("").is_err());
        }
    }

    #[test]
    fn a_request_about_a_task_has_the_effect_of_its_tool_and_keeps_no_answer() {
        for made in [
            Tool::read_only("a"),
            Tool::idempotent("a"),
            Tool::destructive("a"),
        ] {
            let made = made.unwrap();
            for method in [Method::GetTask, Method::UpdateTask, Method::CancelTask] {
                let tool = made.of_task(method);
                let plan = tool.plan();
                assert_eq!(
                    (tool.name(), plan.effect),
                    (made.name(), made.plan().effect)
                );
                let is_get = method == Method::GetTask;
                assert_eq!(plan.retry == RetryRule::Safe, is_get);
                assert_eq!(plan.retry == RetryRule::Never, !is_get);
                let writes = !is_get && plan.is_write();
                assert_eq!(plan.cache == CacheRule::Invalidate, writes);
                assert_eq!(plan.cache == CacheRule::Bypass, !writes);
            }
        }
    }
}
