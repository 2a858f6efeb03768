//! The settings of a breaker, and what makes no sense among them.

use std::time::Duration;

use tollgate_core::InvalidConfig;

/// When a breaker opens, for how long, and how it is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerConfig {
    /// How many failures in a row open it. Default: 3.
    pub failures: u32,
    /// How long it stays open the first time; each probe that fails doubles it. Default: 30 s.
    pub open_time: Duration,
    /// How long it stays open at most. Default: 5 min.
    pub max_open_time: Duration,
    /// How many probes may be in flight at once while it is half open. Default: 1.
    pub probes: u32,
    /// How long a probe may take before its place is given back. Default: none, which means
    /// `open_time`. Should not be below the attempt timeout of a slow tool.
    pub probe_limit: Option<Duration>,
    /// How many breakers a set keeps before it drops those that hold nothing: closed, without
    /// failures, not in use. Default: 10,000.
    pub max_idle: usize,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 3,
            open_time: Duration::from_secs(30),
            max_open_time: Duration::from_secs(300),
            probes: 1,
            probe_limit: None,
            max_idle: 10_000,
        }
    }
}

impl BreakerConfig {
    /// Sets how many failures in a row open it.
    #[must_use]
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets how long it stays open the first time.
    #[must_use]
    pub const fn with_open_time(mut self, time: Duration) -> Self {
        self.open_time = time;
        self
    }

    /// Sets how long it stays open at most.
    #[must_use]
    pub const fn with_max_open_time(mut self, time: Duration) -> Self {
        self.max_open_time = time;
        self
    }

    /// Sets how many probes may be in flight at once.
    #[must_use]
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.probes = probes;
        self
    }

    /// Sets how long a probe may take before its place is given back.
    #[must_use]
    pub const fn with_probe_limit(mut self, limit: Duration) -> Self {
        self.probe_limit = Some(limit);
        self
    }

    /// Sets how many breakers a set keeps before it drops those that hold nothing.
    #[must_use]
    pub const fn with_max_idle(mut self, count: usize) -> Self {
        self.max_idle = count;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if self.failures == 0 {
            return fault("failures", "is 0; a breaker needs one to open");
        }
        if self.open_time.is_zero() {
            return fault("open_time", "is 0; an open breaker would refuse nothing");
        }
        if self.max_open_time < self.open_time {
            return fault("max_open_time", "is below open_time");
        }
        if self.max_open_time > LONGEST {
            return fault(
                "max_open_time",
                "is above a day; force the breaker open instead",
            );
        }
        if self.probes == 0 {
            return fault(
                "probes",
                "is 0; a breaker that is never probed never closes",
            );
        }
        if self.probe_limit.is_some_and(|limit| limit.is_zero()) {
            return fault(
                "probe_limit",
                "is 0; each probe would be written off at once",
            );
        }
        if self.probe_limit.is_some_and(|limit| limit > LONGEST) {
            return fault("probe_limit", "is above a day");
        }
        Ok(())
    }

    /// How long the breaker stays open after this many trips in a row, counted from 1.
    pub(crate) fn open_time_after(&self, trips: u32) -> Duration {
        let factor = 1_u32
            .checked_shl(trips.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.open_time
            .saturating_mul(factor)
            .min(self.max_open_time)
    }

    pub(crate) fn probe_time(&self) -> Duration {
        self.probe_limit.unwrap_or(self.open_time)
    }
}

/// No time of a breaker is longer: what lasts longer is a decision, and has a switch.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let config = BreakerConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let cases = [
            (config.with_failures(0), "failures"),
            (config.with_open_time(Duration::ZERO), "open_time"),
            (
                config.with_max_open_time(Duration::from_secs(29)),
                "max_open_time",
            ),
            (config.with_max_open_time(LONGEST * 2), "max_open_time"),
            (config.with_probes(0), "probes"),
            (config.with_probe_limit(Duration::ZERO), "probe_limit"),
            (config.with_probe_limit(LONGEST * 2), "probe_limit"),
        ];
        for (config, field) in cases {
            let fault = config.validate().unwrap_err();
            assert_eq!(fault.field(), field);
            assert!(fault.to_string().starts_with(field), "{fault}");
        }
    }

    #[test]
    fn open_time_doubles_up_to_the_longest() {
        let secs = [1, 2, 3, 4, 5, 6, 40]
            .map(|trips| BreakerConfig::default().open_time_after(trips).as_secs());
        assert_eq!(secs, [30, 60, 120, 240, 300, 300, 300]);
    }
}
