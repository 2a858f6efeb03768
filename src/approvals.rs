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
