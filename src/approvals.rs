//! The approvals of a stack.

use callward_approval::{ApprovalLayer, Approvals};

use crate::builder::StackBuilder;
use crate::stack::Stack;

impl StackBuilder {
    /// Lets calls run only once they are approved: with [`Approvals`] those whose plans require
    /// confirmation, with an [`ApprovalLayer`] those that its policy names. Default: no call is
    /// asked about.
    pub fn approvals(mut self, layer: impl Into<ApprovalLayer>) -> Self {
        self.approvals = layer.into();
        self
    }
}

impl Stack {
    /// Returns the requests for approval, for operators to decide them; `None` if no operator can.
    #[must_use]
    pub fn approvals(&self) -> Option<&Approvals> {
        let layer = self.approval_layer();
        layer.approvals().filter(|_| layer.has_operators())
    }

    /// Returns the layer that asks about calls.
    #[must_use]
    pub fn approval_layer(&self) -> &ApprovalLayer {
        &self.0.approvals
    }
}

/// Records in the audit log what happens to requests.
#[cfg(feature = "audit")]
pub(crate) fn noting(approvals: &Approvals, audit: &callward_audit::AuditLayer) {
    use serde_json::{Value, json};

    let Some(log) = audit.log.clone() else {
        return;
    };
    approvals.observe(move |request, shown_to| {
        let asked = &request.asked;
        let outcome = shown_to.map_or(request.state.as_str(), |_| "shown");
        let decision = request.decision.as_ref().filter(|_| shown_to.is_none());
        let by = shown_to.or_else(|| decision.map(|decision| &decision.by));
        let members = json!({
            "outcome": outcome,
            "request": request.id,
            "set": asked.set,
            "tool": asked.tool,
            "security": asked.security,
            "principal": asked.principal.as_str(),
            "arguments_digest": asked.arguments_digest,
            "by": by.map(callward_core::Principal::as_str),
            "channel": decision.map(|decision| &decision.channel),
            "note": decision.and_then(|decision| decision.note.as_deref()),
        });
        if let Value::Object(members) = members {
            log.note_approval(members);
        }
    });
}
