//! The rule that comes before every strategy: which servers may get a call.

use std::fmt;

use callward_core::{ToolCall, Weight};

use crate::endpoint::Endpoint;

/// Why a server does not get a call.
///
/// Some reasons exclude it from the call. The others make it unavailable: it is asked when no other
/// server is left, and never for a call that needs a weight.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ExclusionReason {
    /// It does not offer the tool.
    NotOffered,
    /// It is drained: it gets no new calls.
    Draining,
    /// Its weight is too low for the call.
    TooLight {
        /// Its weight.
        weight: Weight,
        /// The least weight the call may go to.
        needed: u32,
    },
    /// A call costs more there than it may.
    OverBudget {
        /// What a call costs there.
        cost: f64,
        /// What it may cost.
        budget: f64,
    },
    /// The call is pinned to another server.
    PinnedElsewhere,
    /// A breaker, its own or the tool's there, is open. Makes it unavailable.
    BreakerOpen,
    /// An operator holds a breaker open. Makes it unavailable.
    HeldOpen,
    /// Its connection is lost. Makes it unavailable.
    Unreachable,
}

impl ExclusionReason {
    /// Returns `true` if the server is excluded from the call, rather than an unavailable one.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::BreakerOpen | Self::HeldOpen | Self::Unreachable)
    }

    /// Returns the word used in decisions, spans and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotOffered => "not_offered",
            Self::Draining => "draining",
            Self::TooLight { .. } => "too_light",
            Self::OverBudget { .. } => "over_budget",
            Self::PinnedElsewhere => "pinned_elsewhere",
            Self::BreakerOpen => "breaker_open",
            Self::HeldOpen => "held_open",
            Self::Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("does not offer the tool"),
            Self::Draining => f.write_str("is drained"),
            Self::TooLight { weight, needed } => write!(f, "has weight {weight}, below {needed}"),
            Self::OverBudget { cost, budget } => {
                write!(f, "costs {cost} a call, above the budget of {budget}")
            }
            Self::PinnedElsewhere => f.write_str("is not the server the call is pinned to"),
            Self::BreakerOpen => f.write_str("has an open breaker"),
            Self::HeldOpen => f.write_str("has a breaker that an operator holds open"),
            Self::Unreachable => f.write_str("cannot be reached"),
        }
    }
}

/// Checks each server for one call. Strategies, pins and affinities all choose within it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    call: &'a ToolCall,
    budget: Option<f64>,
}

impl<'a> Rule<'a> {
    /// The lower of both budgets counts: the router's, and that of the call.
    pub(crate) fn new(call: &'a ToolCall, budget: Option<f64>) -> Self {
        let budget = match (budget, call.cost_budget) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { call, budget }
    }

    /// Checks whether a server may get the call.
    ///
    /// # Errors
    ///
    /// [`ExclusionReason`]: final reasons before those of the moment.
    pub(crate) fn check(&self, endpoint: &Endpoint) -> Result<(), ExclusionReason> {
        self.check_weight(endpoint)?;
        self.check_except_weight(endpoint)
    }

    pub(crate) fn check_except_weight(&self, endpoint: &Endpoint) -> Result<(), ExclusionReason> {
        if self
            .call
            .pin
            .as_ref()
            .is_some_and(|pin| pin != endpoint.server())
        {
            return Err(ExclusionReason::PinnedElsewhere);
        }
        if let (Some(cost), Some(budget)) = (self.call.plan().route.cost, self.budget) {
            let cost = cost * endpoint.cost_factor;
            // NaN fits no budget
            if !matches!(
                cost.partial_cmp(&budget),
                Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
            ) {
                return Err(ExclusionReason::OverBudget { cost, budget });
            }
        }
        endpoint.check(self.call)
    }

    pub(crate) fn check_weight(&self, endpoint: &Endpoint) -> Result<(), ExclusionReason> {
        let weight = endpoint.weight();
        match self.call.plan().route.min_weight {
            Some(needed) if weight.get() < needed => {
                Err(ExclusionReason::TooLight { weight, needed })
            }
            _ => Ok(()),
        }
    }
}
