//! The rules of a stack: which caller may call which tool.

use std::sync::Arc;

use bytes::Bytes;
#[cfg(feature = "audit")]
use callward_auth::AuthorizeLayer;
use callward_auth::{Decide, Policy};
use callward_core::refine::Applied;
use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{Caller, ToolCall, ToolError};

use crate::builder::StackBuilder;
use crate::explain::Explanation;
use crate::stack::Stack;

impl StackBuilder {
    /// Sets which caller may call which tool. Default: all may call all, within the scopes that
    /// their credentials are limited to.
    ///
    /// A call that is denied fails as one of an unknown tool does; so where there are rules, the
    /// error for an unknown tool names no similar tools. Lists are made elsewhere: ask
    /// [`Policy::lists`] for each tool.
    pub fn authorize(mut self, policy: Policy) -> Self {
        self.authorize = self.authorize.with_policy(Arc::new(policy));
        self
    }

    /// Sets who is asked about each call that the rules allow. Default: no one. A call that is
    /// refused so fails with [`ErrorKind::Unauthorized`](crate::ErrorKind::Unauthorized), and its
    /// tool stays listed.
    pub fn authorize_by(mut self, decide: Arc<dyn Decide>) -> Self {
        self.authorize = self.authorize.decided_by(decide);
        self
    }
}

impl Stack {
    /// Returns the rules; `None` if all callers may call all tools.
    #[must_use]
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.0.authorize.policy()
    }

    /// Starts a call as [`prepare`](Self::prepare) does, for a caller. A tool that the rules hide
    /// from it is unknown: it is refused here, as a name that no tool has.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) if no server offers such a tool to
    /// this caller.
    pub fn prepare_as(
        &self,
        tool: &str,
        arguments: impl Into<Bytes>,
        caller: Arc<Caller>,
    ) -> Result<ToolCall, ToolError> {
        if let Some(policy) = self.policy()
            && let Some(entry) = self.0.shared.registry.peek().find(tool)
            && !policy.lists(&caller, entry.tool())
        {
            let ruling = policy.decide(&caller, entry.tool(), Applied::Tool, b"");
            let mut error = callward_auth::unknown_tool(tool);
            error.authorization = Some(ruling.by);
            return Err(error);
        }
        Ok(self.prepare(tool, arguments)?.with_caller(caller))
    }

    /// Returns why all calls of a tool are treated as they are, and whether this caller sees the
    /// tool in lists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownTool`](crate::ErrorKind::UnknownTool) if no server offers such a tool.
    pub fn explain_as(&self, tool: &str, caller: &Caller) -> Result<Explanation, ToolError> {
        let mut explanation = self.explain(tool)?;
        explanation.authorization = self.policy().map(|policy| {
            let (verdict, why) = match policy.lists(caller, &explanation.tool) {
                true => (
                    Verdict::Pass,
                    "some call may be allowed, so the tool is listed",
                ),
                false => (
                    Verdict::Refused,
                    "no call is allowed, so the tool is not listed",
                ),
            };
            Decision::new(Stage::Authorize, verdict, why)
        });
        Ok(explanation)
    }

    /// Returns what is decided about a call, if there are rules or its credential is limited.
    pub(crate) fn ruled(&self, call: &ToolCall) -> Option<Decision> {
        let open = Policy::default();
        let policy = self.policy().map_or(&open, |policy| policy);
        let is_limited = call.caller().credential.scopes.is_some();
        (is_limited || !policy.is_open()).then(|| {
            let ruling =
                policy.decide(call.caller(), call.tool(), call.applied(), call.arguments());
            #[cfg(feature = "approval")]
            let can_ask = self.approval_layer().approvals().is_some();
            #[cfg(not(feature = "approval"))]
            let can_ask = false;
            ruling.decision(can_ask)
        })
    }
}

/// Records refused calls in the audit log, where their plans ask for no record.
#[cfg(feature = "audit")]
pub(crate) fn noting(layer: AuthorizeLayer, audit: &callward_audit::AuditLayer) -> AuthorizeLayer {
    let Some(log) = audit.log.clone() else {
        return layer;
    };
    layer.on_refused(move |call, error| {
        if call.plan().audit.level == callward_core::AuditLevel::None {
            let (tool, inbound) = (call.tool(), call.inbound.as_ref());
            log.note_refused(
                tool.name().as_str(),
                Some(tool),
                call.caller(),
                inbound,
                error,
            );
        }
    })
}
