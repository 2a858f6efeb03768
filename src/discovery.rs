//! How servers are asked for their tools.

use std::time::Duration;

use tollgate_breaker::BreakerConfig;
use tollgate_core::InvalidConfig;

/// How servers are asked for their tools, and when one that does not tell is left alone.
///
/// ```
/// use std::time::Duration;
/// use tollgate::DiscoveryConfig;
///
/// let config = DiscoveryConfig::default().with_timeout(Duration::from_millis(100));
/// assert_eq!(config.timeout, Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryConfig {
    /// How long one listing may take, all its pages together. Never below 5 s. Default: 60 s.
    pub timeout: Duration,
    /// When a server that fails to list its tools is left alone. Its connection's coming back ends
    /// that. Default: [`BreakerConfig::discovery`], 60 s after 2 failures in a row.
    pub breaker: BreakerConfig,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            breaker: BreakerConfig::discovery(),
        }
    }
}

impl DiscoveryConfig {
    /// The shortest timeout of a listing: servers that start slowly are listed first of all.
    pub const LEAST_TIMEOUT: Duration = Duration::from_secs(5);

    /// Sets how long one listing may take; 5 s where less is given.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = if timeout.as_nanos() < Self::LEAST_TIMEOUT.as_nanos() {
            Self::LEAST_TIMEOUT
        } else {
            timeout
        };
        self
    }

    /// Sets the timeout as the environment's `MCP_TOOL_TIMEOUT` states it: in milliseconds, 5 s where
    /// it is less. What is not a number above 0 changes nothing, and is said in the log.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::DiscoveryConfig;
    ///
    /// let stated = |value| DiscoveryConfig::default().with_stated_timeout(value).timeout;
    /// assert_eq!(stated(Some("90000")), Duration::from_secs(90));
    /// assert_eq!(stated(Some("soon")), Duration::from_secs(60));
    /// assert_eq!(stated(None), Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn with_stated_timeout(self, millis: Option<&str>) -> Self {
        match millis.map(|text| (text, text.trim().parse::<u64>())) {
            None => self,
            Some((_, Ok(millis))) if millis > 0 => self.with_timeout(Duration::from_millis(millis)),
            Some((text, _)) => {
                tracing::warn!(
                    value = text,
                    timeout_secs = self.timeout.as_secs_f64(),
                    "{ENV_TIMEOUT} is no number of milliseconds above 0; the timeout stays"
                );
                self
            }
        }
    }

    /// Sets the timeout as the environment's `MCP_TOOL_TIMEOUT` states it, if it does.
    #[must_use]
    pub fn with_env(self) -> Self {
        self.with_stated_timeout(std::env::var(ENV_TIMEOUT).ok().as_deref())
    }

    /// Sets when a server that fails to list its tools is left alone.
    #[must_use]
    pub const fn with_breaker(mut self, config: BreakerConfig) -> Self {
        self.breaker = config;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self.timeout < Self::LEAST_TIMEOUT {
            return Err(InvalidConfig::new("discovery.timeout", "is below 5 s"));
        }
        self.breaker.validate()
    }
}

/// The variable that says how long a listing may take.
const ENV_TIMEOUT: &str = "MCP_TOOL_TIMEOUT";
