//! The layer that authorizes calls.

use std::fmt;
use std::sync::Arc;

use callward_core::{ToolCall, ToolError};
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
        let shared = (!policy.is_open()).then(|| {
            Arc::new(Shared {
                policy,
                refused: None,
            })
        });
        Self { shared }
    }

    /// Calls a function with each refused call and its error. It must not block. Default: none.
    #[must_use]
    pub fn on_refused(self, call: impl Fn(&ToolCall, &ToolError) + Send + Sync + 'static) -> Self {
        let mut shared = self.shared.as_deref().cloned().unwrap_or_default();
        shared.refused = Some(Arc::new(call));
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
