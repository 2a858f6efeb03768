//! The settings of a router.

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

use crate::affinity::AffinityConfig;
use crate::strategy::StrategyName;

/// How calls are spread over servers that may get them.
///
/// ```
/// use callward_router::affinity::AffinityKey;
/// use callward_router::{RouterConfig, StrategyName};
///
/// let mut config = RouterConfig::default();
/// config.strategy = StrategyName::Affinity;
/// config.affinity.by = AffinityKey::User;
/// assert_eq!(config.validate(), Ok(()));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RouterConfig {
    /// Which strategy. Default: [`StrategyName::PeakEwma`].
    pub strategy: StrategyName,
    /// What calls are kept together by, where the strategy is [`StrategyName::Affinity`]. Default:
    /// [`AffinityConfig::default`].
    pub affinity: AffinityConfig,
    /// What each attempt of a call may cost at most, in the units of `costHint`: the tool's, times
    /// the server's [cost factor](crate::Member::with_cost_factor). A call may state a lower budget
    /// ([`with_cost_budget`](callward_core::ToolCall::with_cost_budget)). A tool without a
    /// `costHint` fits any budget. Default: any cost.
    pub cost_budget: Option<f64>,
    /// The share of a replica set, in percent and rounded down, that keeps getting reads even if
    /// breakers are open there. Default: 50.
    pub min_available: u32,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            strategy: StrategyName::default(),
            affinity: AffinityConfig::default(),
            cost_budget: None,
            min_available: 50,
        }
    }
}

impl RouterConfig {
    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self
            .cost_budget
            .is_some_and(|budget| budget.is_nan() || budget < 0.0)
        {
            return Err(InvalidConfig::new(
                "cost_budget",
                "is not a number of 0 or more, in the units of `costHint`",
            ));
        }
        if self.min_available > 100 {
            return Err(InvalidConfig::new("min_available", "is above 100 percent"));
        }
        self.affinity.validate()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_invalid_setting_is_refused_even_if_it_is_not_used() {
        let cases: [(fn(&mut RouterConfig), _); 8] = [
            (|of| of.affinity.ttl = Duration::MAX, Some("ttl")),
            (|of| of.affinity.ttl = SECOND / 2, Some("ttl")),
            (|of| of.affinity.ttl = SECOND, None),
            (|of| of.affinity.ttl = SECOND * 604_800, None),
            (|of| of.cost_budget = Some(-1.0), Some("cost_budget")),
            (|of| of.cost_budget = Some(f64::NAN), Some("cost_budget")),
            (|of| of.min_available = 101, Some("min_available")),
            (|of| of.cost_budget = Some(0.0), None),
        ];
        for (change, field) in cases {
            let mut config = RouterConfig::default();
            change(&mut config);
            assert_eq!(config.validate().err().map(|fault| fault.field), field);
        }
    }
}
