//! The settings of health, and what makes no sense among them.

use std::time::Duration;

use callward_core::InvalidConfig;

/// When a server is left out because its calls fail, for how long, and how it comes back.
///
/// The defaults follow Envoy's outlier detection, panic threshold and slow start, but for the numbers
/// that assume thousands of calls a second: sets of tool servers are small and called seldom. Each
/// field names its source.
///
/// ```
/// use std::time::Duration;
/// use callward_router::HealthConfig;
///
/// let config = HealthConfig::default()
///     .with_faults(3)
///     .with_eject_time(Duration::from_secs(10))
///     .with_ping(None);
/// assert_eq!(config.validate(), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthConfig {
    /// How many faults in a row, of whatever tools, eject a server; 0 if no number does. Default: 5,
    /// as Envoy's `consecutive_5xx` and Finagle's and linkerd's failure accrual (5 to 7). More than
    /// the 3 that open a tool's breaker, so that one broken tool ejects nobody.
    pub faults: u32,
    /// By how many percentage points the share of a server's calls that end well must be below the
    /// mean of the others to eject it; `None` if it is not compared. Default: 30.
    ///
    /// Envoy takes 1.9 standard deviations instead, which cannot be reached in a set of fewer than 5:
    /// the outlier itself widens the deviation. The mean here leaves the server out that is judged.
    /// 30 points of 20 calls are 2.7 standard errors at the least, wherever the mean is.
    pub outlier: Option<u32>,
    /// The least time over which a server's calls are counted for that share. Fewer than
    /// [`min_calls`](Self::min_calls) by then, and it counts on, six times as long at most. Default:
    /// 10 s (Envoy: `interval`, 10 s).
    pub window: Duration,
    /// How many calls a share must be of. Default: 20 (Envoy: 100).
    pub min_calls: u32,
    /// How many servers must have such a share, the one that is judged among them. Default: 3
    /// (Envoy: 5).
    pub min_servers: u32,
    /// Which share of a set may be ejected at once, in percent. One always may, but never the last
    /// that is fit: a set of one ejects nobody. Default: 30 (Envoy: 10, of sets ten times as large).
    pub max_ejected: u32,
    /// How long the first ejection lasts; the second in a row lasts twice, the third three times as
    /// long. One [`window`](Self::window) of good time takes off what one ejection added. Also how
    /// long a probe may take before its place is given to another call. Default: 30 s (Envoy:
    /// `base_ejection_time`).
    pub eject_time: Duration,
    /// How long an ejection lasts at most. Default: 300 s (Envoy: `max_ejection_time`).
    pub max_eject_time: Duration,
    /// How long a server that joins or comes back gets less than its share; zero if it gets all at
    /// once. Default: 30 s (Envoy: `slow_start_window`, off unless set; its documentation shows 30
    /// to 60 s).
    pub slow_start: Duration,
    /// The part of its share that it begins with, in percent. Default: 10 (Envoy:
    /// `min_weight_percent`).
    pub slow_start_floor: u32,
    /// Below which share of fit servers, in percent, reads are spread over ejected ones too; 0 if
    /// never. Default: 50 (Envoy: `healthy_panic_threshold`).
    pub panic: u32,
    /// How servers are asked whether they are there; `None` if they are not. Default: as
    /// [`PingConfig::default`].
    pub ping: Option<PingConfig>,
}

/// How servers are asked whether they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PingConfig {
    /// How often. Default: 10 s (HAProxy: 2 s, for servers in one data centre).
    pub interval: Duration,
    /// By how much of it, in percent, a pause may be longer or shorter, so that servers which started
    /// together are not asked together. Default: 20.
    pub jitter: u32,
    /// How long an answer may take. Default: 5 s.
    pub timeout: Duration,
    /// How many pings in a row must fail for a server to count as gone. Default: 3 (HAProxy: `fall`).
    pub fall: u32,
    /// How many in a row must be answered for it to count as back. Default: 2 (HAProxy: `rise`).
    pub rise: u32,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self {
            faults: 5,
            outlier: Some(30),
            window: Duration::from_secs(10),
            min_calls: 20,
            min_servers: 3,
            max_ejected: 30,
            eject_time: Duration::from_secs(30),
            max_eject_time: Duration::from_secs(300),
            slow_start: Duration::from_secs(30),
            slow_start_floor: 10,
            panic: 50,
            ping: Some(PingConfig::default()),
        }
    }
}

impl Default for PingConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            jitter: 20,
            timeout: Duration::from_secs(5),
            fall: 3,
            rise: 2,
        }
    }
}

impl HealthConfig {
    /// Returns settings by which nobody is ejected, eased in or pinged: what is left is what
    /// breakers, connections and operators say.
    #[must_use]
    pub fn off() -> Self {
        Self {
            faults: 0,
            outlier: None,
            slow_start: Duration::ZERO,
            ping: None,
            ..Self::default()
        }
    }

    /// Sets how many faults in a row eject a server; 0 if no number does.
    #[must_use]
    pub const fn with_faults(mut self, faults: u32) -> Self {
        self.faults = faults;
        self
    }

    /// Sets by how many percentage points a server must be worse than the others to be ejected.
    #[must_use]
    pub const fn with_outlier(mut self, points: Option<u32>) -> Self {
        self.outlier = points;
        self
    }

    /// Sets the least time over which calls are counted for that.
    #[must_use]
    pub const fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets how many calls a share must be of.
    #[must_use]
    pub const fn with_min_calls(mut self, calls: u32) -> Self {
        self.min_calls = calls;
        self
    }

    /// Sets how many servers must have such a share.
    #[must_use]
    pub const fn with_min_servers(mut self, servers: u32) -> Self {
        self.min_servers = servers;
        self
    }

    /// Sets which share of a set may be ejected at once, in percent.
    #[must_use]
    pub const fn with_max_ejected(mut self, percent: u32) -> Self {
        self.max_ejected = percent;
        self
    }

    /// Sets how long the first ejection lasts.
    #[must_use]
    pub const fn with_eject_time(mut self, time: Duration) -> Self {
        self.eject_time = time;
        self
    }

    /// Sets how long an ejection lasts at most.
    #[must_use]
    pub const fn with_max_eject_time(mut self, time: Duration) -> Self {
        self.max_eject_time = time;
        self
    }

    /// Sets how long a server that joins or comes back gets less than its share; zero turns it off.
    #[must_use]
    pub const fn with_slow_start(mut self, time: Duration) -> Self {
        self.slow_start = time;
        self
    }

    /// Sets the part of its share that it begins with, in percent.
    #[must_use]
    pub const fn with_slow_start_floor(mut self, percent: u32) -> Self {
        self.slow_start_floor = percent;
        self
    }

    /// Sets below which share of fit servers, in percent, reads are spread over ejected ones too.
    #[must_use]
    pub const fn with_panic(mut self, percent: u32) -> Self {
        self.panic = percent;
        self
    }

    /// Sets how servers are asked whether they are there.
    #[must_use]
    pub const fn with_ping(mut self, ping: Option<PingConfig>) -> Self {
        self.ping = ping;
        self
    }

    /// Checks the settings. Every constructor that takes them does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if !self.outlier.is_none_or(is_share) {
            return fault("health.outlier", "is not between 1 and 100 points");
        }
        if let Some(text) = wrong_time(self.window) {
            return fault("health.window", text);
        }
        if self.min_calls == 0 {
            return fault(
                "health.min_calls",
                "is 0; a share of no calls means nothing",
            );
        }
        if self.min_servers < 2 {
            return fault(
                "health.min_servers",
                "is below 2; nobody is left to compare with",
            );
        }
        if !is_share(self.max_ejected) {
            return fault(
                "health.max_ejected",
                "is not a share between 1 and 100 percent; set faults to 0 and outlier to none to \
                 eject nobody",
            );
        }
        if let Some(text) = wrong_time(self.eject_time) {
            return fault("health.eject_time", text);
        }
        if self.max_eject_time < self.eject_time {
            return fault("health.max_eject_time", "is below eject_time");
        }
        if let Some(text) = wrong_time(self.max_eject_time) {
            return fault("health.max_eject_time", text);
        }
        if !self.slow_start.is_zero()
            && let Some(text) = wrong_time(self.slow_start)
        {
            return fault("health.slow_start", text);
        }
        if !is_share(self.slow_start_floor) {
            return fault(
                "health.slow_start_floor",
                "is not a share between 1 and 100 percent; a server that begins with nothing never \
                 shows how it is",
            );
        }
        if self.panic > 100 {
            return fault("health.panic", "is above 100 percent");
        }
        self.ping.as_ref().map_or(Ok(()), PingConfig::validate)
    }
}

impl PingConfig {
    /// Sets how often a server is asked.
    #[must_use]
    pub const fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets by how much of the interval, in percent, a pause may be longer or shorter.
    #[must_use]
    pub const fn with_jitter(mut self, percent: u32) -> Self {
        self.jitter = percent;
        self
    }

    /// Sets how long an answer may take.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many pings in a row must fail for a server to count as gone.
    #[must_use]
    pub const fn with_fall(mut self, pings: u32) -> Self {
        self.fall = pings;
        self
    }

    /// Sets how many in a row must be answered for it to count as back.
    #[must_use]
    pub const fn with_rise(mut self, pings: u32) -> Self {
        self.rise = pings;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let fault = |field, reason| Err(InvalidConfig::new(field, reason));
        if let Some(text) = wrong_time(self.interval) {
            return fault("health.ping.interval", text);
        }
        if self.jitter > 100 {
            return fault("health.ping.jitter", "is above 100 percent");
        }
        if let Some(text) = wrong_time(self.timeout) {
            return fault("health.ping.timeout", text);
        }
        if self.fall == 0 {
            return fault("health.ping.fall", "is 0; every server would be gone");
        }
        if self.rise == 0 {
            return fault("health.ping.rise", "is 0; no server would ever be gone");
        }
        Ok(())
    }
}

const fn is_share(percent: u32) -> bool {
    1 <= percent && percent <= 100
}

/// Times are counted in milliseconds, so what is below one would be none.
fn wrong_time(time: Duration) -> Option<&'static str> {
    if time < Duration::from_millis(1) {
        Some("is below 1 ms")
    } else if time > LONGEST {
        Some("is above a day")
    } else {
        None
    }
}

/// No time of health is longer: what lasts longer is a decision, and an operator's.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let config = HealthConfig::default();
        let ping = PingConfig::default();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(HealthConfig::off().validate(), Ok(()));
        let short = Duration::from_micros(999);
        let with_ping = |ping| config.with_ping(Some(ping));
        let cases = [
            (config.with_outlier(Some(0)), "health.outlier"),
            (config.with_outlier(Some(101)), "health.outlier"),
            (config.with_window(short), "health.window"),
            (config.with_window(LONGEST * 2), "health.window"),
            (config.with_min_calls(0), "health.min_calls"),
            (config.with_min_servers(1), "health.min_servers"),
            (config.with_max_ejected(0), "health.max_ejected"),
            (config.with_max_ejected(101), "health.max_ejected"),
            (config.with_eject_time(Duration::ZERO), "health.eject_time"),
            (
                config.with_max_eject_time(Duration::from_secs(29)),
                "health.max_eject_time",
            ),
            (
                config.with_max_eject_time(LONGEST * 2),
                "health.max_eject_time",
            ),
            (config.with_slow_start(short), "health.slow_start"),
            (config.with_slow_start_floor(0), "health.slow_start_floor"),
            (config.with_slow_start_floor(101), "health.slow_start_floor"),
            (config.with_panic(101), "health.panic"),
            (with_ping(ping.with_interval(short)), "health.ping.interval"),
            (with_ping(ping.with_jitter(101)), "health.ping.jitter"),
            (with_ping(ping.with_timeout(short)), "health.ping.timeout"),
            (with_ping(ping.with_fall(0)), "health.ping.fall"),
            (with_ping(ping.with_rise(0)), "health.ping.rise"),
        ];
        for (config, field) in cases {
            assert_eq!(config.validate().unwrap_err().field(), field);
        }
    }
}
