//! The layer that authorizes calls.

use std::fmt;
use std::sync::Arc;

use callward_core::{BoxFuture, ToolCall, ToolError};
use tower_layer::Layer;

use crate::rules::Policy;
use crate::service::Authorize;

/// Wraps a service in [`Authorize`].
#[derive(Debug, Clone, Default)]
pub struct AuthorizeLayer {
    /// `None` if no call is refused but for its scopes, and nothing has to know of that.
    pub(crate) shared: Option<Arc<Shared>>,
}

#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) policy: Arc<Policy>,
    pub(crate) refused: Option<Refused>,
    pub(crate) decide: Option<Arc<dyn Decide>>,
}

/// Decides about calls that the rules allow, outside of this process.
pub trait Decide: Send + Sync + 'static {
    /// Decides about a call, which waits for the answer. The error refuses it: it was not sent.
    fn decide(&self, call: &ToolCall) -> BoxFuture<'static, Result<(), ToolError>>;
}

/// What is reported about each refused call.
pub(crate) type Refused = Arc<dyn Fn(&ToolCall, &ToolError) + Send + Sync>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
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
    pub fn with_policy(self, policy: Arc<Policy>) -> Self {
        match self.shared.is_none() && policy.is_open() {
            true => self,
            false => self.with(|shared| shared.policy = policy),
        }
    }

    /// Calls a function with each refused call and its error. It must not block. Default: none.
    #[must_use]
    pub fn on_refused(self, call: impl Fn(&ToolCall, &ToolError) + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.refused = Some(Arc::new(call)))
    }

    /// Asks about each call that the rules allow. Default: nothing is asked.
    #[must_use]
    pub fn decided_by(self, decide: Arc<dyn Decide>) -> Self {
        self.with(|shared| shared.decide = Some(decide))
    }

    fn with(self, set: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = self.shared.as_deref().cloned().unwrap_or_default();
        set(&mut shared);
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// Returns the policy, unless it is [open](Policy::is_open).
    #[must_use]
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        let policy = &self.shared.as_ref()?.policy;
        (!policy.is_open()).then_some(policy)
    }
}

impl<S> Layer<S> for AuthorizeLayer {
    type Service = Authorize<S>;

    fn layer(&self, inner: S) -> Authorize<S> {
        Authorize {
            inner,
            shared: self.shared.clone(),
        }
    }
}
