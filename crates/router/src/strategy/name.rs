//! The strategies that can be asked for by name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Affinity, Capability, Category, LeastConnections, PeakEwma, Priority, Random, RoundRobin,
    Strategy, Weighted,
};

/// A strategy that comes with the router, by the name that configs use.
///
/// ```
/// use callward_router::StrategyName;
///
/// assert_eq!(serde_json::to_string(&StrategyName::default())?, r#""peak_ewma""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StrategyName {
    /// See [`Affinity`]; with the default settings if none are given.
    Affinity,
    /// See [`Capability`].
    Capability,
    /// See [`Category`].
    Category,
    /// See [`PeakEwma`].
    #[default]
    PeakEwma,
    /// See [`LeastConnections`].
    LeastConnections,
    /// See [`Priority`].
    Priority,
    /// See [`Random`].
    Random,
    /// See [`RoundRobin`].
    RoundRobin,
    /// See [`Weighted`].
    Weighted,
}

impl StrategyName {
    /// Makes the strategy.
    #[must_use]
    pub fn strategy(self) -> Arc<dyn Strategy> {
        match self {
            Self::Affinity => Arc::new(Affinity::default()),
            Self::Capability => Arc::new(Capability),
            Self::Category => Arc::new(Category),
            Self::PeakEwma => Arc::new(PeakEwma),
            Self::LeastConnections => Arc::new(LeastConnections),
            Self::Priority => Arc::new(Priority),
            Self::Random => Arc::new(Random),
            Self::RoundRobin => Arc::new(RoundRobin),
            Self::Weighted => Arc::new(Weighted),
        }
    }
}
