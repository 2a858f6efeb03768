//! The settings of a breaker, and their validation.

use std::time::Duration;

use callward_core::InvalidConfig;

/// When a breaker opens, for how long, and how it is probed.
///
/// Three things can open it: failures in a row, the share of calls that fail, and the share of
/// calls that are slow. Each works alone or beside the others; only the first is on by default.
///
/// ```
/// use std::time::Duration;
/// use callward_breaker::BreakerConfig;
///
/// // half of the last minute's calls failed, or nine in ten took longer than 5 s
/// let config = BreakerConfig::default()
///     .with_failures(0)
///     .with_failure_rate(50)
///     .with_slow_calls(Duration::from_secs(5), 90);
/// assert_eq!(config.validate(), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct BreakerConfig {
    /// How many consecutive failures open it; 0 if only a share does. Failures of calls that were
    /// in flight together count once, and so do the attempts of one call; before a whole server
    /// each tool that loses its connections counts once. Default: 3.
    pub failures: u32,
    /// Which share of the window's calls, in percent, must have failed to open it. Default: none
    /// does.
    pub failure_rate: Option<u32>,
    /// The duration from which a call counts as slow, and which share of the window's calls must be
    /// slow to open it. Default: calls are not timed.
    pub slow_calls: Option<SlowCalls>,
    /// The time, up to now, whose calls are counted for the two shares. It moves on in tenths.
    /// Default: 60 s.
    pub window: Duration,
    /// How many calls the window must hold before a share of them means anything. Default: 10.
    pub min_calls: u32,
    /// How long it stays open the first time; each probe that fails doubles it. Default: 30 s.
    pub open_time: Duration,
    /// How long it stays open at most. Default: 5 min.
    pub max_open_time: Duration,
    /// How many probes may be in flight at once while it is half open. Default: 1.
    pub probes: u32,
}

/// Which calls are slow, and how many of them are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowCalls {
    /// A call that takes this long is slow. Time in which it waits for a person is not counted.
    pub after: Duration,
    /// Which share of the window's calls, in percent, must be slow to open the breaker.
    pub rate: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 3,
            failure_rate: None,
            slow_calls: None,
            window: Duration::from_secs(60),
            min_calls: 10,
            open_time: Duration::from_secs(30),
            max_open_time: Duration::from_secs(300),
            probes: 1,
        }
    }
}

impl BreakerConfig {
    /// Returns the settings for a whole server: 5 transport faults in a row, then 10 s, 1 min at
    /// most.
    ///
    /// More failures than a tool's, since one lost connection fails all calls that were on it, and
    /// any tool among them may be the cause; and less time, since everything waits for it, and a
    /// refused connection costs the server little.
    pub fn server() -> Self {
        Self::default()
            .with_failures(5)
            .with_open_time(Duration::from_secs(10))
            .with_max_open_time(Duration::from_secs(60))
    }

    /// Returns the settings for the discovery of a server: 2 failures in a row, then 60 s, 5 min at
    /// most.
    pub(crate) fn discovery() -> Self {
        Self::default()
            .with_failures(2)
            .with_open_time(Duration::from_secs(60))
    }

    /// Sets how many failures in a row open it; 0 if no number does, where a share of calls may.
    pub const fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// Sets which share of the window's calls, in percent, must have failed to open it.
    pub const fn with_failure_rate(mut self, percent: u32) -> Self {
        self.failure_rate = Some(percent);
        self
    }

    /// Sets the duration from which a call is slow, and which share of the window's calls, in
    /// percent, must be slow to open it.
    pub const fn with_slow_calls(mut self, after: Duration, percent: u32) -> Self {
        self.slow_calls = Some(SlowCalls {
            after,
            rate: percent,
        });
        self
    }

    /// Sets the time whose calls are counted for the two shares.
    pub const fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets how many calls the window must hold before a share of them means anything.
    pub const fn with_min_calls(mut self, calls: u32) -> Self {
        self.min_calls = calls;
        self
    }

    /// Sets how long it stays open the first time.
    pub const fn with_open_time(mut self, time: Duration) -> Self {
        self.open_time = time;
        self
    }

    /// Sets how long it stays open at most.
    pub const fn with_max_open_time(mut self, time: Duration) -> Self {
        self.max_open_time = time;
        self
    }

    /// Sets how many probes may be in flight at once.
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.probes = probes;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        let is_share = |share: &u32| (1..=100).contains(share);
        if self.failures == 0 && self.failure_rate.is_none() && self.slow_calls.is_none() {
            let reason = "is 0, and no share of calls opens it; set one of the two";
            return fault("failures", reason);
        }
        if !self.failure_rate.as_ref().is_none_or(is_share) {
            return fault("failure_rate", NO_SHARE);
        }
        if let Some(slow) = self.slow_calls {
            if !is_share(&slow.rate) {
                return fault("slow_calls.rate", NO_SHARE);
            }
            if slow.after.is_zero() {
                return fault("slow_calls.after", "is 0; every call would be slow");
            }
        }
        if self.window < MIN_WINDOW {
            return fault("window", "is below 10 ms; use more");
        }
        if self.open_time.is_zero() {
            return fault("open_time", "is 0; use more");
        }
        if self.max_open_time < self.open_time {
            return fault("max_open_time", "is below open_time");
        }
        if self.window > MAX_TIME {
            return fault("window", "is above a day");
        }
        if self.max_open_time > MAX_TIME {
            return fault("max_open_time", "is above a day");
        }
        if self.min_calls == 0 {
            return fault("min_calls", "is 0; use 1 or more");
        }
        if self.probes == 0 {
            return fault("probes", "is 0; use 1 or more");
        }
        Ok(())
    }

    /// Returns how long the breaker stays open after this many trips in a row, counted from 1.
    pub(crate) fn open_time_after(&self, trips: u32) -> Duration {
        let factor = 2_u32.saturating_pow(trips.saturating_sub(1));
        let open_time = self.open_time.saturating_mul(factor);
        open_time.min(self.max_open_time)
    }
}

const NO_SHARE: &str = "is not a share between 1 and 100 percent";

/// A tenth of it is a millisecond, and shorter times depend on the scheduler.
const MIN_WINDOW: Duration = Duration::from_millis(10);

const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let config = BreakerConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let cases = [
            (config.with_failures(0), "failures"),
            (config.with_failure_rate(0), "failure_rate"),
            (config.with_failure_rate(101), "failure_rate"),
            (config.with_slow_calls(MAX_TIME, 0), "slow_calls.rate"),
            (
                config.with_slow_calls(Duration::ZERO, 1),
                "slow_calls.after",
            ),
            (config.with_window(Duration::from_millis(9)), "window"),
            (config.with_window(MAX_TIME * 2), "window"),
            (config.with_min_calls(0), "min_calls"),
            (config.with_open_time(Duration::ZERO), "open_time"),
            (
                config.with_max_open_time(Duration::from_secs(29)),
                "max_open_time",
            ),
            (config.with_max_open_time(MAX_TIME * 2), "max_open_time"),
            (config.with_probes(0), "probes"),
        ];
        for (config, field) in cases {
            let fault = config.validate().unwrap_err();
            assert_eq!(fault.field, field);
            assert!(fault.to_string().starts_with(field), "{fault}");
        }
        assert_eq!(BreakerConfig::server().validate(), Ok(()));
        // where a share opens it, no number of failures in a row has to
        assert_eq!(
            config.with_failures(0).with_failure_rate(1).validate(),
            Ok(())
        );
    }

    #[test]
    fn open_time_doubles_up_to_the_longest() {
        let secs = [1, 2, 3, 4, 5, 6, 40]
            .map(|trips| BreakerConfig::default().open_time_after(trips).as_secs());
        assert_eq!(secs, [30, 60, 120, 240, 300, 300, 300]);
    }
}
