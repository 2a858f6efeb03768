//! Explains what would happen to a call, and why.

use std::sync::Arc;

use callward_cache::{CachePreview, EvidenceStatus, ToolScopes};
use callward_core::refine::Applied;
use callward_core::trail::Decision;
use callward_core::{
    CacheRule, CallPlan, Resolved, RouteDecision, ServerId, Tool, ToolCall, Trail, Weight,
};
use callward_router::ExclusionReason;

use crate::builder::Settings;
use crate::scopes::may_write;

mod ask;
mod show;
mod trail;

/// What would happen to a call and why; of a tool as a whole, or of one call of it.
///
/// Its `Display` is the [trail](Self::trail) as a table, and below it the rules, the servers, the
/// plan and each hint with its source and reason.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The name clients call it by.
    pub client_name: String,
    /// The call; `None` where the tool as a whole is explained.
    pub call: Option<ToolCall>,
    /// The servers that offer the tool, those that would be asked first at the head. Among equals
    /// the strategy of the router chooses.
    pub candidates: Vec<Candidate>,
    /// Which server would get the call if it were sent now, and why: strategy, rule, what speaks
    /// against others, and who would be asked next. Nothing was sent to find out. `None` of a tool
    /// as a whole whose plan depends on the arguments.
    pub route: Option<RouteDecision>,
    /// What the rules say, if there are any.
    pub(crate) authorization: Option<Decision>,
    /// What the guardrails look at, and which one refuses the call.
    guardrails: Vec<Decision>,
    preview: Option<CachePreview>,
    evidence: Option<EvidenceStatus>,
    /// The operator's scopes of the tool.
    scopes: Option<ToolScopes>,
    settings: Arc<Settings>,
}

/// A server that offers the tool, as it is now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The server.
    pub server: ServerId,
    /// Its weight.
    pub weight: Weight,
    /// Its categories.
    pub categories: Vec<String>,
    /// How many calls a minute it gets, of all its tools together; `None` for any number.
    pub calls_per_minute: Option<f64>,
    /// Why it is not there, if it is not.
    pub last_error: Option<String>,
    /// The router's reason against it for such a call, its weight aside.
    pub why_not: Option<ExclusionReason>,
}

const OPEN: &str = "its breaker, or the one for the tool there, is open";

impl Candidate {
    /// Returns `true` if a call with this plan may ever go there.
    #[must_use]
    pub fn may_take(&self, plan: &CallPlan) -> bool {
        self.weight.get() >= plan.route.min_weight.unwrap_or(0)
    }

    /// Returns `true` if the plan's categories put it before others.
    #[must_use]
    pub fn is_preferred(&self, plan: &CallPlan) -> bool {
        let preferred = &plan.route.prefer;
        self.categories
            .iter()
            .any(|own| preferred.contains(&own.as_str()))
    }

    /// Returns the current reason against it, as the rest of a sentence.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &self.last_error {
            Some(error) => Some(format!("down: {error}")),
            None if self.is_refused() => Some(OPEN.to_owned()),
            None => self.why_not.map(|reason| reason.to_string()),
        }
    }

    /// Its own breaker or the tool's there would refuse such a call.
    fn is_refused(&self) -> bool {
        self.why_not.is_some_and(|reason| !reason.is_final())
    }

    /// What ranks it behind others, the worst first.
    fn rank(&self, plan: &CallPlan) -> (bool, bool, bool, bool) {
        (
            !self.may_take(plan),
            self.trouble().is_some(),
            self.weight.get() == 0,
            !self.is_preferred(plan),
        )
    }
}

impl Explanation {
    /// Returns which of the tool's plans the call gets; without a call, the tool's own.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.call.as_ref().map_or(Applied::Tool, ToolCall::applied)
    }

    /// Returns the plan: of the call, or else the tool's own.
    #[must_use]
    pub fn plan(&self) -> &CallPlan {
        self.tool.plan_applied(self.applied())
    }

    /// Returns the hints that the plan was derived from; where it is the strictest of several,
    /// those of the one that does most harm.
    #[must_use]
    pub fn resolved(&self) -> &Resolved {
        self.tool.resolved_applied(self.applied())
    }

    /// Returns the tool that shows what an unanswered call did. `None` if the call is not a write,
    /// or the tool is unknown.
    #[must_use]
    pub fn verifier(&self) -> Option<&str> {
        let verifier = self.tool.verifier.as_deref();
        verifier.filter(|_| self.plan().is_write())
    }

    /// Returns what the result of the call depends on, as the operator named it: of a call, the
    /// pieces of state; of a tool as a whole, the templates. `None` stands for everything of the
    /// replica set, or for a call whose result is not kept.
    #[must_use]
    pub fn reads(&self) -> Option<Vec<String>> {
        let is_kept = matches!(self.plan().cache, CacheRule::Store { .. });
        let scopes = self.scopes.as_ref().filter(|_| is_kept)?;
        scopes.read_by(self.call.as_ref())
    }

    /// Returns what the call may change, as [`reads`](Self::reads) does; `None` stands for
    /// everything of the replica set, or for a call that is not a write.
    #[must_use]
    pub fn writes(&self) -> Option<Vec<String>> {
        let may_write = may_write(&self.plan().cache);
        let scopes = self.scopes.as_ref().filter(|_| may_write)?;
        scopes.written_by(self.call.as_ref())
    }

    /// Returns what each layer would decide, in the order of the stack: what
    /// [`Trail::observed`](callward_core::Trail::observed) does for a call that was made.
    #[must_use]
    pub fn trail(&self) -> Trail {
        trail::trail(self)
    }
}
