//! The settings of a router.

use std::sync::Arc;

use callward_core::InvalidConfig;

use crate::affinity::{AffinityConfig, AffinityObserver};
use crate::health::HealthConfig;
use crate::strategy::{Affinity, Strategy, StrategyName};

/// How calls are spread over servers that may get them.
///
/// ```
/// use callward_router::affinity::{AffinityConfig, AffinityKey};
/// use callward_router::{RouterConfig, StrategyName};
///
/// let config = RouterConfig::default()
///     .with_strategy(StrategyName::Affinity)
///     .with_affinity(AffinityConfig::default().with_by(AffinityKey::User));
/// assert_eq!(config.make_strategy(None)?.name(), "affinity");
/// # Ok::<(), callward_core::InvalidConfig>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RouterConfig {
    /// Which strategy. Default: [`StrategyName::PeakEwma`].
    pub strategy: StrategyName,
    /// What calls are kept together by, where the strategy is [`StrategyName::Affinity`]. Default:
    /// [`AffinityConfig::default`].
    pub affinity: AffinityConfig,
    /// What each attempt of a call may cost at most, in the units of `costHint`. Default: any cost. See
    /// [`Router::with_cost_budget`](crate::Router::with_cost_budget).
    pub cost_budget: Option<f64>,
    /// When a server is left out because its calls fail, how it comes back, and how servers are asked
    /// for signs of life. It is the pool's: see [`Pool::with_health`](crate::Pool::with_health).
    /// Default: [`HealthConfig::default`].
    pub health: HealthConfig,
}

impl RouterConfig {
    /// Sets the strategy.
    #[must_use]
    pub const fn with_strategy(mut self, strategy: StrategyName) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets what calls are kept together by, where the strategy is [`StrategyName::Affinity`].
    #[must_use]
    pub fn with_affinity(mut self, affinity: AffinityConfig) -> Self {
        self.affinity = affinity;
        self
    }

    /// Sets what each attempt of a call may cost at most, in the units of `costHint`.
    #[must_use]
    pub const fn with_cost_budget(mut self, budget: f64) -> Self {
        self.cost_budget = Some(budget);
        self
    }

    /// Sets when a server is left out because its calls fail, and how it comes back.
    #[must_use]
    pub const fn with_health(mut self, health: HealthConfig) -> Self {
        self.health = health;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self
            .cost_budget
            .is_some_and(|budget| budget.is_nan() || budget < 0.0)
        {
            return Err(InvalidConfig::new(
                "cost_budget",
                "is no number of 0 or more",
            ));
        }
        self.health.validate()?;
        self.affinity.validate()
    }

    /// Makes the strategy. An observer is told where keys go, if they go anywhere.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense, whichever strategy is asked for.
    pub fn make_strategy(
        &self,
        observer: Option<Arc<dyn AffinityObserver>>,
    ) -> Result<Arc<dyn Strategy>, InvalidConfig> {
        self.validate()?;
        if self.strategy != StrategyName::Affinity {
            return Ok(self.strategy.strategy());
        }
        let affinity = Affinity::new(&self.affinity)?;
        Ok(Arc::new(match observer {
            Some(observer) => affinity.with_observer(observer),
            None => affinity,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_strategy_is_made_as_it_is_asked_for() {
        for (name, made) in [
            (StrategyName::PeakEwma, "peak_ewma"),
            (StrategyName::RoundRobin, "round_robin"),
            (StrategyName::Affinity, "affinity"),
        ] {
            let config = RouterConfig::default().with_strategy(name);
            assert_eq!(config.make_strategy(None).unwrap().name(), made);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_even_where_it_is_not_used() {
        let affinity = AffinityConfig::default().with_ttl(Duration::ZERO);
        let config = RouterConfig::default().with_affinity(affinity);
        let fault = config.make_strategy(None).unwrap_err();
        assert_eq!(fault.field(), "ttl");
        for budget in [-1.0, f64::NAN] {
            let config = RouterConfig::default().with_cost_budget(budget);
            let fault = config.validate().unwrap_err();
            assert_eq!(fault.field(), "cost_budget");
        }
        let config = RouterConfig::default().with_cost_budget(0.0);
        assert_eq!(config.validate(), Ok(()));
    }
}
