//! The settings of a rate limit, and what makes no sense among them.

use std::time::Duration;

use callward_core::InvalidConfig;

/// Which rates are held to, and how long a call may wait for its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RateLimitConfig {
    /// Whether a tool is called no more often than its plan says (its `rateLimitHint`). Default:
    /// yes.
    pub tools: bool,
    /// How many calls a minute one principal may make. Default: any number.
    pub per_principal: Option<f64>,
    /// How many calls a minute may pass here in all. Default: any number.
    pub in_all: Option<f64>,
    /// How many calls may come at once after a pause: as many as the rate allows in this time, and
    /// at least 1. So no minute sees more than the rate and those together. Default: 10 s.
    pub burst: Duration,
    /// How long a call waits for its turn at most; zero refuses whatever cannot pass at once. A
    /// deadline that is sooner counts. Default: 30 s.
    pub max_wait: Duration,
    /// How many principals, and how many tools, are kept count of. With more, those are forgotten
    /// first that have not called for so long that nothing is lost; where none has, any for whom
    /// no call waits. Default: 10,000.
    pub max_keys: usize,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            tools: true,
            per_principal: None,
            in_all: None,
            burst: Duration::from_secs(10),
            max_wait: Duration::from_secs(30),
            max_keys: 10_000,
        }
    }
}

impl RateLimitConfig {
    /// Returns the settings for one server: no rate but this one.
    #[must_use]
    pub fn for_server(calls_per_minute: f64) -> Self {
        Self {
            tools: false,
            in_all: Some(calls_per_minute),
            ..Self::default()
        }
    }

    /// Sets whether a tool is called no more often than its plan says.
    #[must_use]
    pub const fn with_tools(mut self, held: bool) -> Self {
        self.tools = held;
        self
    }

    /// Sets how many calls a minute one principal may make.
    #[must_use]
    pub const fn with_per_principal(mut self, calls_per_minute: Option<f64>) -> Self {
        self.per_principal = calls_per_minute;
        self
    }

    /// Sets how many calls a minute may pass here in all.
    #[must_use]
    pub const fn with_in_all(mut self, calls_per_minute: Option<f64>) -> Self {
        self.in_all = calls_per_minute;
        self
    }

    /// Sets in what time the rate allows as many calls as may come at once.
    #[must_use]
    pub const fn with_burst(mut self, time: Duration) -> Self {
        self.burst = time;
        self
    }

    /// Sets how long a call waits for its turn at most.
    #[must_use]
    pub const fn with_max_wait(mut self, time: Duration) -> Self {
        self.max_wait = time;
        self
    }

    /// Sets how many principals, and how many tools, are kept count of.
    #[must_use]
    pub const fn with_max_keys(mut self, count: usize) -> Self {
        self.max_keys = count;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let no_rate =
            |rate: Option<f64>| rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0));
        let reason = "is not a number of calls a minute above 0; leave it out for no limit";
        if no_rate(self.per_principal) {
            return Err(InvalidConfig::new("per_principal", reason));
        }
        if no_rate(self.in_all) {
            return Err(InvalidConfig::new("in_all", reason));
        }
        if self.burst > Duration::from_secs(3600) {
            let reason = "is above an hour; a rate counted by the minute would mean little";
            return Err(InvalidConfig::new("burst", reason));
        }
        if self.max_keys == 0 {
            return Err(InvalidConfig::new(
                "max_keys",
                "is 0; nobody's calls could be counted",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let config = RateLimitConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let cases = [
            (config.with_per_principal(Some(0.0)), "per_principal"),
            (config.with_per_principal(Some(f64::NAN)), "per_principal"),
            (config.with_in_all(Some(-1.0)), "in_all"),
            (config.with_in_all(Some(f64::INFINITY)), "in_all"),
            (config.with_burst(Duration::from_secs(4000)), "burst"),
            (config.with_max_keys(0), "max_keys"),
        ];
        for (config, field) in cases {
            assert_eq!(config.validate().unwrap_err().field(), field);
        }
    }
}
