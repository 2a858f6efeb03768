//! What stands in the order in place of layers whose feature is off: nothing.

#[cfg(not(feature = "approval"))]
pub(crate) mod approval {
    pub(crate) type Approval<S> = S;
    pub(crate) type ApprovalLayer = tower::layer::util::Identity;
}

#[cfg(not(feature = "audit"))]
pub(crate) mod audit {
    pub(crate) type Audit<S> = S;
    pub(crate) type AuditLayer = tower::layer::util::Identity;
}

#[cfg(not(feature = "auth"))]
pub(crate) mod auth {
    pub(crate) type Authorize<S> = S;
    pub(crate) type AuthorizeLayer = tower::layer::util::Identity;
}

#[cfg(not(feature = "guardrail"))]
pub(crate) mod guardrail {
    pub(crate) type ArgumentGuard<S> = S;
    pub(crate) type ArgumentGuardLayer = tower::layer::util::Identity;
    pub(crate) type ResultGuard<S> = S;
    pub(crate) type ResultGuardLayer = tower::layer::util::Identity;
}

#[cfg(not(feature = "telemetry"))]
pub(crate) mod telemetry {
    use callward_core::{ServerId, Watch};
    use tower::layer::util::Identity;

    pub(crate) type CallSpan<S> = S;
    pub(crate) type CallSpanLayer = Identity;
    pub(crate) type AttemptSpan<S> = S;
    pub(crate) type AttemptSpanLayer = Identity;

    /// A listing without a span.
    pub(crate) struct DiscoverySpan;

    #[expect(clippy::unused_self, reason = "as the span has it")]
    impl DiscoverySpan {
        pub(crate) const fn begin(_: &ServerId) -> Self {
            Self
        }

        pub(crate) const fn watch(&self) -> Option<Watch> {
            None
        }

        pub(crate) fn follow<F: Future>(self, listed: F) -> F {
            listed
        }
    }
}
