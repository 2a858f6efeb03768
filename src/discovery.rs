//! How servers are asked for their tools.

use std::time::Duration;

use callward_breaker::BreakerConfig;
use callward_core::InvalidConfig;

/// How servers are asked for their tools, and when one that does not tell is left alone.
///
/// ```
/// use std::time::Duration;
/// use callward::DiscoveryConfig;
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

    /// Sets how long one listing may take; 5 s where less is given. What `MCP_TOOL_TIMEOUT` states
    /// fits here, read by [`parse_tool_timeout`](crate::limit::parse_tool_timeout).
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = if timeout.as_nanos() < Self::LEAST_TIMEOUT.as_nanos() {
            Self::LEAST_TIMEOUT
        } else {
            timeout
        };
        self
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
