//! The limits of a stack: settings and state.

use std::time::Duration;

use callward_core::{InvalidConfig, ServerId};
use callward_limit::{Cap, ConcurrencyStatus, RateLimitConfig, RateStatus};
use serde::{Deserialize, Serialize};

/// The limits that hold for all servers of a stack. Those of one server are set at the
/// [`Server`](crate::Server).
///
/// ```
/// use std::time::Duration;
/// use callward::{LimitsConfig, Stack};
///
/// let mut limits = LimitsConfig::default();
/// limits.rate.max_wait = Duration::from_secs(5);
/// limits.attempt_timeout = Some(Duration::from_secs(90));
/// let builder = Stack::builder().limits(limits);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// The rates of tools, and how long a call waits for a token. Its
    /// [`max_wait`](RateLimitConfig::max_wait) holds for the rates of servers too. Default: as the
    /// plans of tools say.
    #[serde(flatten)]
    pub rate: RateLimitConfig,
    /// How far progress may stretch an attempt. Default: to ten times its timeout.
    pub progress_cap: Cap,
    /// The attempt timeout of a tool without `estimatedDuration`, in place of the profile's.
    /// Default: the profile's, 60 s.
    #[serde(with = "callward_core::human::duration")]
    pub attempt_timeout: Option<Duration>,
}

impl LimitsConfig {
    pub(crate) fn validate(&self) -> Result<(), InvalidConfig> {
        self.progress_cap.validate()?;
        match self.attempt_timeout {
            Some(Duration::ZERO) => Err(InvalidConfig::new(
                "attempt_timeout",
                "is 0; no server answers in no time",
            )),
            _ => Ok(()),
        }
    }
}

/// The state of a stack's limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The rates of tools that were called.
    pub rates: Vec<RateStatus>,
    /// The limits of each server, in the order they were added.
    pub servers: Vec<ServerLimitStatus>,
}

/// The state of one server's limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerLimitStatus {
    /// The server.
    pub server: ServerId,
    /// Its rate, if it has one.
    pub rate: Option<RateStatus>,
    /// Its permits, and those of its tools.
    pub concurrency: ConcurrencyStatus,
}
