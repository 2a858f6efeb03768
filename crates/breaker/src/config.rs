//! The settings of a breaker, and their validation.

use std::time::Duration;

use callward_core::InvalidConfig;
use callward_core::human::duration;
use serde::{Deserialize, Serialize};

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
/// let mut config = BreakerConfig::default();
/// config.failures = 0;
/// config.failure_rate = Some(0.5);
/// (config.slow_after, config.slow_rate) = (Some(Duration::from_secs(5)), Some(0.9));
/// assert_eq!(config.validate(), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[must_use]
pub struct BreakerConfig {
    /// How many consecutive failures open it; 0 if only a share does. Failures of calls that were
    /// in flight together count once, and so do the attempts of one call; before a whole server
    /// each tool that loses its connections counts once. Default: 3.
    pub failures: u32,
    /// Which share of the window's calls, up to 1.0, must have failed to open it. Default: none
    /// does.
    pub failure_rate: Option<f64>,
    /// The duration from which a call counts as slow; time in which it waits for a person does not
    /// count. Default: calls are not timed.
    #[serde(with = "duration")]
    pub slow_after: Option<Duration>,
    /// Which share of the window's calls, up to 1.0, must be slow to open it. Default: 0.5, where
    /// calls are timed.
    pub slow_rate: Option<f64>,
    /// The time, up to now, whose calls are counted for the two shares. It moves on in tenths.
    /// Default: 60 s.
    #[serde(with = "duration")]
    pub window: Duration,
    /// How many calls the window must hold before a share of them means anything. Default: 10.
    #[serde(skip)]
    pub min_calls: u32,
    /// How long it stays open the first time; each probe that fails doubles it. Default: 30 s.
    #[serde(rename = "open_for", with = "duration")]
    pub open_time: Duration,
    /// How long it stays open at most, unless the first time is longer. Default: 5 min.
    #[serde(skip)]
    pub max_open_time: Duration,
    /// How many probes may be in flight at once while it is half open. Default: 1.
    pub probes: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 3,
            failure_rate: None,
            slow_after: None,
            slow_rate: None,
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
        Self {
            failures: 5,
            open_time: Duration::from_secs(10),
            max_open_time: Duration::from_secs(60),
            ..Self::default()
        }
    }

    /// Returns the settings for the discovery of a server: 2 failures in a row, then 60 s, 5 min at
    /// most.
    pub(crate) fn discovery() -> Self {
        Self {
            failures: 2,
            open_time: Duration::from_secs(60),
            ..Self::default()
        }
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let is_share = |share: Option<f64>| share.is_none_or(|share| share > 0.0 && share <= 1.0);
        let takes_shares = self.failure_rate.is_some() || self.slow_after.is_some();
        #[rustfmt::skip]
        let rules = [
            (self.failures > 0 || takes_shares, "failures",
             "is 0; set 1 or more failures in a row, or 0 together with `failure_rate` or \
              `slow_after`"),
            (is_share(self.failure_rate), "failure_rate", SHARE),
            (is_share(self.slow_rate), "slow_rate", SHARE),
            (self.slow_after.is_some() || self.slow_rate.is_none(), "slow_rate",
             "is set without `slow_after`, from when on a call is slow"),
            (self.slow_after != Some(Duration::ZERO), "slow_after",
             "is 0; every call would be slow"),
            (self.window >= MIN_WINDOW, "window", "is below 10 ms"),
            (self.window <= MAX_TIME, "window", "is above a day"),
            (!self.open_time.is_zero() && self.open_time <= MAX_TIME, "open_time",
             "is not more than zero and at most a day"),
            (self.max_open_time <= MAX_TIME, "max_open_time", "is above a day"),
            (self.min_calls > 0, "min_calls", "is 0; use 1 or more"),
            (self.probes > 0, "probes", "is 0; use 1 or more"),
        ];
        let broken = rules.into_iter().find(|(holds, ..)| !holds);
        broken.map_or(Ok(()), |(_, field, reason)| {
            Err(InvalidConfig::new(field, reason))
        })
    }

    /// Returns the share of slow calls that opens it, where calls are timed.
    #[must_use]
    pub fn slow_share(&self) -> f64 {
        self.slow_rate.unwrap_or(0.5)
    }

    /// Returns how long the breaker stays open after this many trips in a row, counted from 1.
    pub(crate) fn open_time_after(&self, trips: u32) -> Duration {
        let factor = 2_u32.saturating_pow(trips.saturating_sub(1));
        let open_time = self.open_time.saturating_mul(factor);
        open_time.min(self.max_open_time.max(self.open_time))
    }
}

const SHARE: &str = "is not a share of the window's calls, above 0.0 and up to 1.0";

/// A tenth of it is a millisecond, and shorter times depend on the scheduler.
const MIN_WINDOW: Duration = Duration::from_millis(10);

const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let cases: [(fn(&mut BreakerConfig), _); 13] = [
            (|of| of.failures = 0, "failures"),
            (|of| of.failure_rate = Some(0.0), "failure_rate"),
            (|of| of.failure_rate = Some(1.01), "failure_rate"),
            (|of| of.failure_rate = Some(f64::NAN), "failure_rate"),
            (|of| of.slow_rate = Some(0.0), "slow_rate"),
            (|of| of.slow_rate = Some(0.1), "slow_rate"),
            (|of| of.slow_after = Some(Duration::ZERO), "slow_after"),
            (|of| of.window = Duration::from_millis(9), "window"),
            (|of| of.window = MAX_TIME * 2, "window"),
            (|of| of.min_calls = 0, "min_calls"),
            (|of| of.open_time = Duration::ZERO, "open_time"),
            (|of| of.max_open_time = MAX_TIME * 2, "max_open_time"),
            (|of| of.probes = 0, "probes"),
        ];
        for (change, field) in cases {
            let mut config = BreakerConfig::default();
            assert_eq!(config.validate(), Ok(()));
            change(&mut config);
            let fault = config.validate().unwrap_err();
            assert_eq!(fault.field, field);
            assert!(fault.to_string().starts_with(field), "{fault}");
        }
        assert_eq!(BreakerConfig::server().validate(), Ok(()));
        // where a share opens it, no number of failures in a row has to
        let mut share = BreakerConfig::server();
        (share.failures, share.failure_rate) = (0, Some(0.01));
        assert_eq!(share.validate(), Ok(()));
    }

    #[test]
    fn open_time_doubles_up_to_the_longest() {
        let secs = [1, 2, 3, 4, 5, 6, 40]
            .map(|trips| BreakerConfig::default().open_time_after(trips).as_secs());
        assert_eq!(secs, [30, 60, 120, 240, 300, 300, 300]);
        let mut long = BreakerConfig::server();
        long.open_time = MAX_TIME;
        assert_eq!(
            [1, 2].map(|trips| long.open_time_after(trips)),
            [MAX_TIME; 2]
        );
    }
}
