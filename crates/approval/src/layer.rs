//! The layer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use callward_core::{Approver, ConfirmRule, Delivery, ErrorKind, ToolCall, ToolError};
use tower_layer::Layer;

use crate::{Approval, Approvals, client};

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
///     roles: Vec::new(),
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

type Policy = Arc<dyn Fn(&ToolCall) -> Option<Cow<'static, str>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) approvals: Approvals,
    policy: Option<Policy>,
    by: Approver,
    has_operators: bool,
    is_advisory: bool,
}

/// Why a call asks, and whom.
pub(crate) struct Why {
    pub(crate) reason: Cow<'static, str>,
    pub(crate) by: Approver,
    pub(crate) roles: Vec<String>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.approvals.fmt(f)
    }
}

impl Shared {
    /// Returns why a call asks, if it does.
    #[inline]
    pub(crate) fn asks(&self, call: &ToolCall) -> Option<Why> {
        // the call that made the task was asked about
        if call.tool().definition.method.is_of_task() {
            return None;
        }
        if let Some(ask) = &call.ask {
            return Some(Why {
                reason: format!("rule `{}` asks about the call", ask.rule).into(),
                by: ask.by.unwrap_or(self.by),
                roles: ask.roles.clone(),
            });
        }
        let reason = match &self.policy {
            Some(policy) => policy(call),
            None if call.plan().confirm == ConfirmRule::Skip => None,
            None => {
                let plan = call.plan();
                Some(format!("the call is {}: {}", plan.effect, plan.reason).into())
            }
        };
        let reason = reason.filter(|_| !self.is_advisory || client::of(call).is_some());
        reason.map(|reason| Why {
            reason,
            by: self.by,
            roles: Vec::new(),
        })
    }

    /// Returns who approves a call, if that is possible.
    pub(crate) fn approver(&self, by: Approver, call: &ToolCall) -> Result<Approver, ToolError> {
        match by {
            Approver::Client if client::of(call).is_some() => Ok(by),
            _ if self.has_operators => Ok(Approver::Operator),
            Approver::Client => Err(no_one("the client does not declare elicitation")),
            Approver::Operator => Err(no_one("no operator can decide here")),
        }
    }
}

/// The error of a call that no person can approve.
fn no_one(why: &str) -> ToolError {
    let text = format!("a person must approve this call, and {why}");
    ToolError::new(ErrorKind::Unauthorized, Delivery::NotSent, text)
}

impl ApprovalLayer {
    /// Makes a layer that asks about the calls for which the policy returns why, for the person who
    /// decides, and about those that a [rule](callward_core::CallContext::ask) asks about. The
    /// default of [`ApprovalLayer`] asks about no call.
    #[must_use]
    pub fn new(
        approvals: Approvals,
        policy: impl Fn(&ToolCall) -> Option<Cow<'static, str>> + Send + Sync + 'static,
    ) -> Self {
        Self::of(approvals, Some(Arc::new(policy)))
    }

    fn of(approvals: Approvals, policy: Option<Policy>) -> Self {
        let shared = Shared {
            approvals,
            policy,
            by: Approver::default(),
            has_operators: true,
            is_advisory: false,
        };
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// Sets who approves calls, where no rule says it. Default: operators.
    ///
    /// With [`Approver::Client`] the client asks its user by elicitation, and its answer counts. A
    /// client may answer by itself, without a person. An operator is asked in place of a client
    /// that does not declare elicitation.
    #[must_use]
    pub fn by(self, by: Approver) -> Self {
        self.with(|shared| shared.by = by)
    }

    /// States that no operator can decide: calls that only an operator may approve are refused.
    #[must_use]
    pub fn without_operators(self) -> Self {
        self.with(|shared| shared.has_operators = false)
    }

    /// Asks only clients that can ask a person; the calls of others are sent unasked, unless a rule
    /// asks about them.
    #[must_use]
    pub fn advisory(self) -> Self {
        self.without_operators()
            .by(Approver::Client)
            .with(|shared| {
                shared.is_advisory = true;
            })
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        if let Some(shared) = &mut self.shared {
            change(Arc::make_mut(shared));
        }
        self
    }

    /// Returns who approves calls, where no rule says it.
    #[must_use]
    pub fn approver(&self) -> Approver {
        self.shared
            .as_ref()
            .map_or_else(Approver::default, |shared| shared.by)
    }

    /// Returns `true` if operators can decide.
    #[must_use]
    pub fn has_operators(&self) -> bool {
        self.shared
            .as_ref()
            .is_some_and(|shared| shared.has_operators)
    }

    /// Returns the requests; `None` if the layer asks about no call.
    #[must_use]
    pub fn approvals(&self) -> Option<&Approvals> {
        self.shared.as_ref().map(|shared| &shared.approvals)
    }
}

/// Asks about the calls whose plans require confirmation, and those that a rule asks about.
impl From<Approvals> for ApprovalLayer {
    fn from(approvals: Approvals) -> Self {
        Self::of(approvals, None)
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
