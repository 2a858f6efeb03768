//! Why a server may not get a call.

use std::fmt;

use callward_core::Weight;

/// Why a server does not get a call.
///
/// Some reasons are final: the server is no candidate, whatever else there is. Others are doubts: it
/// is asked when nobody better is left, and never for a call that needs a weight, as what cannot be
/// undone is not tried on a server that is known to be sick.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Unfit {
    /// It does not offer the tool. Final.
    NotOffered,
    /// It is drained: it gets no new calls. Final.
    Draining,
    /// It is lighter than the call needs. Final.
    TooLight {
        /// Its weight.
        weight: Weight,
        /// The least weight the call may go to.
        needed: u32,
    },
    /// It lacks a capability that the call needs. Final.
    LacksCapability,
    /// A call would cost more there than it may. Final.
    OverBudget {
        /// What a call costs there.
        cost: f64,
        /// What it may cost.
        budget: f64,
    },
    /// The call is meant for another server. Final.
    PinnedElsewhere,
    /// A breaker, its own or the tool's there, lets no call through. A doubt.
    BreakerOpen,
    /// It failed too often lately, and gets no calls for a while. A doubt.
    Ejected,
    /// It did not answer when it was asked for a sign of life, or its connection is gone. A doubt.
    Unreachable,
    /// An operator says that it is not to be used. A doubt.
    HeldDown,
    /// Whoever set its gate says that it is not fit. A doubt.
    Unhealthy,
}

impl Unfit {
    /// Says whether the server is no candidate at all, instead of a doubtful one.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::NotOffered
            | Self::Draining
            | Self::TooLight { .. }
            | Self::LacksCapability
            | Self::OverBudget { .. }
            | Self::PinnedElsewhere => true,
            Self::BreakerOpen
            | Self::Ejected
            | Self::Unreachable
            | Self::HeldDown
            | Self::Unhealthy => false,
        }
    }

    /// Returns the word used in decisions, spans and tables.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotOffered => "not_offered",
            Self::Draining => "draining",
            Self::TooLight { .. } => "too_light",
            Self::LacksCapability => "lacks_capability",
            Self::OverBudget { .. } => "over_budget",
            Self::PinnedElsewhere => "pinned_elsewhere",
            Self::BreakerOpen => "breaker_open",
            Self::Ejected => "ejected",
            Self::HeldDown => "held_down",
            Self::Unreachable => "unreachable",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("does not offer the tool"),
            Self::Draining => f.write_str("is drained"),
            Self::TooLight { weight, needed } => write!(f, "has weight {weight}, below {needed}"),
            Self::LacksCapability => f.write_str("lacks a capability the call needs"),
            Self::OverBudget { cost, budget } => {
                write!(f, "costs {cost} a call, above the budget of {budget}")
            }
            Self::PinnedElsewhere => f.write_str("is not the server the call is meant for"),
            Self::BreakerOpen => f.write_str("has an open breaker"),
            Self::Ejected => f.write_str("failed too often lately"),
            Self::Unreachable => f.write_str("cannot be reached"),
            Self::HeldDown => f.write_str("is held down by an operator"),
            Self::Unhealthy => f.write_str("is unhealthy"),
        }
    }
}
