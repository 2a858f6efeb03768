//! The layer that authorizes calls.

use std::fmt;
use std::sync::Arc;

use callward_core::{BoxFuture, ToolCall, ToolError};
use tower_layer::Layer;

use crate::rules::Policy;
use crate::service::Authorize;

/// Wraps a service in [`Authorize`].
#[derive(Clone, Default)]
pub struct AuthorizeLayer {
    pub(crate) policy: Arc<Policy>,
    pub(crate) refused: Option<Refused>,
    pub(crate) decide: Option<Arc<dyn Decide>>,
    pub(crate) can_ask: bool,
}

/// Decides about calls that the rules allow, outside of this process.
pub trait Decide: Send + Sync + 'static {
    /// Decides about a call, which waits for the answer. The error refuses it: it was not sent.
    fn decide(&self, call: &ToolCall) -> BoxFuture<'static, Result<(), ToolError>>;
}

/// What is reported about each refused call.
pub(crate) type Refused = Arc<dyn Fn(&ToolCall, &ToolError) + Send + Sync>;

impl fmt::Debug for AuthorizeLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizeLayer")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl AuthorizeLayer {
    /// Makes a layer of this policy.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self::default().with_policy(policy)
    }

    /// Replaces the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Arc<Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// Calls a function with each refused call and its error. It must not block. Default: none.
    #[must_use]
    pub fn on_refused(
        mut self,
        call: impl Fn(&ToolCall, &ToolError) + Send + Sync + 'static,
    ) -> Self {
        self.refused = Some(Arc::new(call));
        self
    }

    /// Asks about each call that the rules allow. Default: nothing is asked.
    #[must_use]
    pub fn decided_by(mut self, decide: Arc<dyn Decide>) -> Self {
        self.decide = Some(decide);
        self
    }

    /// Passes calls on that a rule asks about, with the rule in their
    /// [context](callward_core::CallContext::ask): a layer inside has them approved. Default: they
    /// are refused.
    #[must_use]
    pub const fn with_approvals(mut self) -> Self {
        self.can_ask = true;
        self
    }

    /// Returns the policy, unless it is [open](Policy::is_open).
    #[must_use]
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        (!self.policy.is_open()).then_some(&self.policy)
    }
}

impl<S> Layer<S> for AuthorizeLayer {
    type Service = Authorize<S>;

    fn layer(&self, inner: S) -> Authorize<S> {
        let layer = Arc::new(self.clone());
        Authorize { inner, layer }
    }
}
