//! The layer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use callward_core::{ConfirmRule, ToolCall};
use tower_layer::Layer;

use crate::{Approval, Approvals};

/// Puts an [`Approval`] around a service. All services of one layer share their requests.
///
/// ```
/// use callward_approval::{ApprovalConfig, ApprovalLayer, Approvals, Decision, LocalStore};
/// use callward_core::{Principal, Tool, ToolCall, ToolError};
/// use callward_testkit::MockService;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let approvals = Approvals::open(LocalStore::default(), ApprovalConfig::default()).await?;
/// let server = MockService::counting();
/// let service = ServiceBuilder::new()
///     .layer(ApprovalLayer::from(approvals.clone()))
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
#[derive(Debug, Clone, Default)]
pub struct ApprovalLayer {
    shared: Option<Arc<Shared>>,
}

type Policy = Box<dyn Fn(&ToolCall) -> Option<Cow<'static, str>> + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) approvals: Approvals,
    policy: Option<Policy>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.approvals.fmt(f)
    }
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
            Some(policy) => policy(call),
            None if call.plan().confirm == ConfirmRule::Skip => None,
            None => {
                let plan = call.plan();
                Some(format!("the call is {}: {}", plan.effect, plan.reason).into())
            }
        }
    }
}

impl ApprovalLayer {
    /// Makes a layer that asks about the calls for which the policy returns why, for the person who
    /// decides. The default of [`ApprovalLayer`] asks about no call.
    #[must_use]
    pub fn new(
        approvals: Approvals,
        policy: impl Fn(&ToolCall) -> Option<Cow<'static, str>> + Send + Sync + 'static,
    ) -> Self {
        let policy: Option<Policy> = Some(Box::new(policy));
        let shared = Some(Arc::new(Shared { approvals, policy }));
        Self { shared }
    }

    /// Returns the requests; `None` if the layer asks about no call.
    #[must_use]
    pub fn approvals(&self) -> Option<&Approvals> {
        self.shared.as_ref().map(|shared| &shared.approvals)
    }
}

/// Asks about the calls whose plans require confirmation.
impl From<Approvals> for ApprovalLayer {
    fn from(approvals: Approvals) -> Self {
        let policy = None;
        let shared = Some(Arc::new(Shared { approvals, policy }));
        Self { shared }
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
