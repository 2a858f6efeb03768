//! The layer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use callward_core::ToolCall;
use tower_layer::Layer;

use crate::policy::by_plan;
use crate::{Approval, Approvals, Policy};

/// Puts an [`Approval`] around a service. All services of one layer share their requests.
///
/// ```
/// use callward_approval::{ApprovalConfig, ApprovalLayer, Approvals, Decision, MemoryStore};
/// use callward_core::{Principal, Tool, ToolCall, ToolError};
/// use callward_testkit::MockService;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let approvals = Approvals::open(MemoryStore::default(), ApprovalConfig::default()).await?;
/// let server = MockService::counting();
/// let service = ServiceBuilder::new()
///     .layer(ApprovalLayer::by_plan(approvals.clone()))
///     .service(server.clone());
///
/// let delete = ToolCall::new(Tool::destructive("delete_order")?, r#"{"id":7}"#);
/// let answer = service.clone().oneshot(delete.clone()).await?;
/// assert!(answer.is_error(), "no one decided within 50 s");
///
/// let yes = Decision {
///     approves: true,
///     by: Principal::new("ops"),
///     channel: "cli".to_owned(),
///     note: None,
/// };
/// approvals.decide(&approvals.list().await?[0].id, yes).await?;
/// assert!(!service.oneshot(delete).await?.is_error());
/// assert_eq!(server.started(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ApprovalLayer {
    shared: Option<Arc<Shared>>,
}

pub(crate) struct Shared {
    pub(crate) approvals: Approvals,
    policy: Option<Box<dyn Policy>>,
}

impl Shared {
    /// Returns why a call asks, if it does.
    #[inline]
    pub(crate) fn asks(&self, call: &ToolCall) -> Option<Cow<'static, str>> {
        // the call that made the task was asked about
        if call.tool().definition.method.is_of_task() {
            return None;
        }
        match &self.policy {
            None => by_plan(call),
            Some(policy) => policy.asks(call),
        }
    }
}

impl ApprovalLayer {
    /// Makes a layer that asks about the calls that the policy names.
    #[must_use]
    pub fn new(approvals: Approvals, policy: impl Policy) -> Self {
        Self::of(approvals, Some(Box::new(policy)))
    }

    /// Makes a layer that asks about the calls whose plans require confirmation.
    #[must_use]
    pub fn by_plan(approvals: Approvals) -> Self {
        Self::of(approvals, None)
    }

    /// Makes a layer that asks about no call.
    #[must_use]
    pub const fn off() -> Self {
        Self { shared: None }
    }

    fn of(approvals: Approvals, policy: Option<Box<dyn Policy>>) -> Self {
        let shared = Some(Arc::new(Shared { approvals, policy }));
        Self { shared }
    }

    /// Returns the requests; `None` if the layer is off.
    #[must_use]
    pub fn approvals(&self) -> Option<&Approvals> {
        self.shared.as_ref().map(|shared| &shared.approvals)
    }
}

impl From<Approvals> for ApprovalLayer {
    fn from(approvals: Approvals) -> Self {
        Self::by_plan(approvals)
    }
}

impl fmt::Debug for ApprovalLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approvals = self.approvals();
        f.debug_tuple("ApprovalLayer").field(&approvals).finish()
    }
}

impl<S> Layer<S> for ApprovalLayer {
    type Service = Approval<S>;

    fn layer(&self, inner: S) -> Approval<S> {
        Approval {
            inner,
            shared: self.shared.clone(),
        }
    }
}
