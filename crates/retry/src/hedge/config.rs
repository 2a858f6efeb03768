//! The settings of the layer, and what makes no sense among them.

use std::time::Duration;

use callward_core::InvalidConfig;

/// When a slow read gets a second attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HedgeConfig {
    /// Which share of a tool's calls, in percent, is answered before a call counts as slow.
    /// Default: 95, so that at most about one call in twenty is sent twice.
    pub percentile: u32,
    /// How often a tool must have answered before what was measured of it is believed. Default: 20,
    /// the fewest at which the 95th percentile is not simply the slowest.
    pub min_observations: u32,
    /// No hedge is sent sooner than this, however quick the tool usually is. Default: 10 ms; what is
    /// saved below that, no model and no person notices.
    pub min_delay: Duration,
    /// Hedge also where nobody says which server has the first attempt, because what stands behind
    /// this layer chooses servers by itself. Default: no.
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
    /// Sets which share of a tool's calls, in percent, is answered before a call counts as slow.
    #[must_use]
    pub const fn with_percentile(mut self, percent: u32) -> Self {
        self.percentile = percent;
        self
    }

    /// Sets how often a tool must have answered before what was measured of it is believed.
    #[must_use]
    pub const fn with_min_observations(mut self, answers: u32) -> Self {
        self.min_observations = answers;
        self
    }

    /// Sets the time before which no hedge is sent.
    #[must_use]
    pub const fn with_min_delay(mut self, least: Duration) -> Self {
        self.min_delay = least;
        self
    }

    /// Sets whether to hedge where nobody says which server has the first attempt.
    #[must_use]
    pub const fn with_unnamed_servers(mut self, hedge: bool) -> Self {
        self.unnamed_servers = hedge;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if !(50..=99).contains(&self.percentile) {
            return fault(
                "percentile",
                "is not between 50 and 99; below, most calls would be sent twice",
            );
        }
        if !(5..=MOST_NEEDED).contains(&self.min_observations) {
            return fault("min_observations", "is not between 5 and 1000");
        }
        Ok(())
    }
}

/// A measure forgets half of what it saw when it holds twice as many.
const MOST_NEEDED: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
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
