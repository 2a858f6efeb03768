//! The annotation rule, and what else decides whether a server is a candidate at all.

use callward_core::ToolCall;

use crate::endpoint::Endpoint;
use crate::strategy::Strategy;
use crate::unfit::Unfit;

/// What decides whether a server may get a call, whatever other servers there are.
///
/// Every choice passes through here, whoever made it: a strategy, an affinity or a pin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) call: &'a ToolCall,
    strategy: &'a dyn Strategy,
    price: Option<Price>,
}

/// What a call costs, and what it may cost.
#[derive(Debug, Clone, Copy)]
struct Price {
    /// For a server whose factor is 1.
    cost: f64,
    budget: f64,
}

impl<'a> Rule<'a> {
    /// `budget` is what a call may cost that states no budget of its own; the lower one counts.
    pub(crate) fn new(call: &'a ToolCall, budget: Option<f64>, strategy: &'a dyn Strategy) -> Self {
        let budget = match (budget, call.cost_budget()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let price = |budget| {
            let cost = call.plan().route.cost?;
            Some(Price { cost, budget })
        };
        Self {
            call,
            strategy,
            price: budget.and_then(price),
        }
    }

    /// Says whether a server may get the call.
    ///
    /// # Errors
    ///
    /// [`Unfit`]: what speaks against it; what is final before what is a doubt.
    pub(crate) fn check(&self, endpoint: &Endpoint) -> Result<(), Unfit> {
        self.check_weight(endpoint)?;
        self.check_besides_weight(endpoint)
    }

    /// Says the same of everything but its weight.
    pub(crate) fn check_besides_weight(&self, endpoint: &Endpoint) -> Result<(), Unfit> {
        self.check_pin(endpoint)?;
        self.check_price(endpoint)?;
        self.strategy.admits(self.call, endpoint)?;
        endpoint.check(self.call)
    }

    pub(crate) fn check_weight(&self, endpoint: &Endpoint) -> Result<(), Unfit> {
        let weight = endpoint.weight();
        match self.call.plan().route.min_weight {
            Some(needed) if weight.get() < needed => Err(Unfit::TooLight { weight, needed }),
            _ => Ok(()),
        }
    }

    fn check_pin(&self, endpoint: &Endpoint) -> Result<(), Unfit> {
        match self.call.pin() {
            Some(pin) if pin != endpoint.server() => Err(Unfit::PinnedElsewhere),
            _ => Ok(()),
        }
    }

    fn check_price(&self, endpoint: &Endpoint) -> Result<(), Unfit> {
        let Some(Price { cost, budget }) = self.price else {
            return Ok(());
        };
        let cost = cost * endpoint.cost_factor();
        // what is no number fits no budget
        if cost <= budget {
            Ok(())
        } else {
            Err(Unfit::OverBudget { cost, budget })
        }
    }
}
