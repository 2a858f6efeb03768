//! The settings of the layer.

use std::time::Duration;

use callward_core::InvalidConfig;
use serde::{Deserialize, Serialize};

/// When a slow read gets a second attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HedgeConfig {
    /// The percentile of a tool's latency above which a call is slow. Default: 95, so that about
    /// one call in twenty is sent twice.
    pub percentile: u32,
    /// How many calls of a tool must be known before one is hedged. Default: 20, the fewest with a
    /// 95th percentile below the slowest.
    #[serde(skip)]
    pub min_observations: u32,
    /// No hedge is sent sooner than this. Default: 10 ms.
    #[serde(skip)]
    pub min_delay: Duration,
    /// Also hedge where the server of the first attempt is unknown, as before a load balancer.
    /// Default: no.
    #[serde(skip)]
    pub unnamed_servers: bool,
}

impl Default for HedgeConfig {
    fn default() -> Self {
        Self {
            percentile: 95,
            min_observations: 20,
            min_delay: Duration::from_millis(10),
            unnamed_servers: false,
        }
    }
}

impl HedgeConfig {
    /// Sets the percentile of a tool's latency above which a call is slow.
    #[must_use]
    pub const fn with_percentile(mut self, percent: u32) -> Self {
        self.percentile = percent;
        self
    }

    /// Sets how many calls of a tool must be known before one is hedged.
    #[must_use]
    pub const fn with_min_observations(mut self, calls: u32) -> Self {
        self.min_observations = calls;
        self
    }

    /// Sets the time before which no hedge is sent.
    #[must_use]
    pub const fn with_min_delay(mut self, least: Duration) -> Self {
        self.min_delay = least;
        self
    }

    /// Sets whether to hedge where the server of the first attempt is unknown.
    #[must_use]
    pub const fn with_unnamed_servers(mut self, hedge: bool) -> Self {
        self.unnamed_servers = hedge;
        self
    }

    /// Checks the settings, as each constructor that takes them does.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if !(50..=99).contains(&self.percentile) {
            return fault(
                "percentile",
                "is not between 50 and 99; below, most calls would be sent twice",
            );
        }
        if !(5..=MAX_NEEDED).contains(&self.min_observations) {
            return fault("min_observations", "is not between 5 and 1000");
        }
        Ok(())
    }
}

/// As many as are kept.
const MAX_NEEDED: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names_the_invalid_setting() {
        let config = HedgeConfig::default();
        assert_eq!(config.validate(), Ok(()));
        for (config, field) in [
            (config.with_percentile(49), "percentile"),
            (config.with_percentile(100), "percentile"),
            (config.with_min_observations(4), "min_observations"),
            (config.with_min_observations(1001), "min_observations"),
        ] {
            assert_eq!(config.validate().map_err(|fault| fault.field()), Err(field));
        }
    }
}
