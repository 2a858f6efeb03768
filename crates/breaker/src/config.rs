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
    /// How long a probe may take before its place is given back; `None` means `open_time`.
    pub(crate) probe_limit: Option<Duration>,
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
        Self::standard()
    }
}

impl BreakerConfig {
    const fn standard() -> Self {
        Self {
            failures: 3,
            failure_rate: None,
            slow_calls: None,
            window: Duration::from_secs(60),
            min_calls: 10,
            open_time: Duration::from_secs(30),
            max_open_time: Duration::from_secs(300),
            probes: 1,
            probe_limit: None,
        }
    }

    /// Returns the settings for a whole server: 5 transport faults in a row, then 10 s, 1 min at
    /// most.
    ///
    /// More failures than a tool's, since one lost connection fails all calls that were on it, and
    /// any tool among them may be the cause; and less time, since everything waits for it, and a
    /// refused connection costs the server little.
    pub const fn server() -> Self {
        Self::standard()
            .with_failures(5)
            .with_open_time(Duration::from_secs(10))
            .with_max_open_time(Duration::from_secs(60))
    }

    /// Returns the settings for the discovery of a server: 2 failures in a row, then 60 s, 5 min at
    /// most.
    pub const fn discovery() -> Self {
        Self::standard()
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

    #[cfg(test)]
    pub(crate) const fn with_probe_limit(mut self, limit: Duration) -> Self {
        self.probe_limit = Some(limit);
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let opens = self.failures > 0 || self.takes_shares();
        let (failed, slow) = (self.failure_rate, self.slow_calls.map(|slow| slow.rate));
        let is_share = |share: Option<u32>| share.is_none_or(|share| (1..=100).contains(&share));
        let is_slow = self.slow_calls.is_none_or(|slow| !slow.after.is_zero());
        let (window, longest) = (self.window, self.max_open_time);
        let rules = [
            (
                opens,
                "failures",
                "is 0, and no share of calls opens it; set one of the two",
            ),
            (is_share(failed), "failure_rate", NO_SHARE),
            (is_share(slow), "slow_calls.rate", NO_SHARE),
            (
                is_slow,
                "slow_calls.after",
                "is 0; every call would be slow",
            ),
            (window >= MIN_WINDOW, "window", "is below 10 ms; use more"),
            (window <= MAX_TIME, "window", "is above a day"),
            (self.min_calls > 0, "min_calls", "is 0; use 1 or more"),
            (!self.open_time.is_zero(), "open_time", "is 0; use more"),
            (
                longest >= self.open_time,
                "max_open_time",
                "is below open_time",
            ),
            (longest <= MAX_TIME, "max_open_time", "is above a day"),
            (self.probes > 0, "probes", "is 0; use 1 or more"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, field, reason)) => Err(InvalidConfig::new(field, reason)),
            None => Ok(()),
        }
    }

    /// Returns `true` if any share of calls opens the breaker, so that each outcome must be
    /// recorded.
    pub(crate) const fn takes_shares(&self) -> bool {
        self.failure_rate.is_some() || self.slow_calls.is_some()
    }

    /// Returns `true` if a call that took this long was slow.
    pub(crate) fn is_slow(&self, took: Option<Duration>) -> bool {
        let slow = self.slow_calls.zip(took);
        slow.is_some_and(|(slow, took)| took >= slow.after)
    }

    /// Returns how long the breaker stays open after this many trips in a row, counted from 1.
    pub(crate) fn open_time_after(&self, trips: u32) -> Duration {
        let factor = 1_u32
            .checked_shl(trips.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.open_time
            .saturating_mul(factor)
            .min(self.max_open_time)
    }

    /// How long a probe may take before its place is given back.
    pub(crate) fn probe_time(&self) -> Duration {
        self.probe_limit.unwrap_or(self.open_time)
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
