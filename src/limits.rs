//! The limits of a stack: what is set, and what is known of them.

use std::collections::HashMap;
use std::time::Duration;

use callward_core::{InvalidConfig, ServerId, ToolName};
use callward_limit::{
    AttemptTimeoutLayer, Cap, ConcurrencyHandle, ConcurrencyLimitLayer, ConcurrencyStatus,
    RateLimitConfig, RateLimitLayer, RateStatus, Shed,
};

/// The limits that hold for all servers of a stack. What holds for one is said of the
/// [`Server`](crate::Server).
///
/// ```
/// use std::time::Duration;
/// use callward::{LimitsConfig, Stack};
///
/// let mut limits = LimitsConfig::default();
/// limits.rate = limits.rate.with_per_principal(Some(120.0));
/// limits.attempt_timeout = Some(Duration::from_secs(90));
/// let builder = Stack::builder().limits(limits);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// How often tools and principals may call, and how long a call waits for its turn. Of this,
    /// [`burst`](RateLimitConfig::burst) and [`max_wait`](RateLimitConfig::max_wait) hold for the
    /// rates of servers too. Default: tools as their plans say, principals any number.
    pub rate: RateLimitConfig,
    /// How far progress may stretch an attempt. Default: to ten times its timeout.
    pub progress_cap: Cap,
    /// The attempt timeout of a tool that does not say how long it takes, in place of the
    /// profile's. Default: the profile's, 60 s.
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

/// The limits of one server, as they are set.
#[derive(Debug, Clone)]
pub(crate) struct OfServer {
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) shed: Shed,
    pub(crate) max_concurrent_per_tool: Option<usize>,
    pub(crate) max_concurrent_of: HashMap<ToolName, usize>,
    pub(crate) calls_per_minute: Option<f64>,
}

impl Default for OfServer {
    fn default() -> Self {
        Self {
            max_concurrent: ConcurrencyLimitLayer::DEFAULT_MAX_IN_FLIGHT,
            max_waiting: ConcurrencyLimitLayer::DEFAULT_MAX_WAITING,
            shed: Shed::default(),
            max_concurrent_per_tool: None,
            max_concurrent_of: HashMap::new(),
            calls_per_minute: None,
        }
    }
}

/// The layers of limits around one server.
#[derive(Debug)]
pub(crate) struct ServerLayers {
    pub(crate) rate: RateLimitLayer,
    pub(crate) concurrency: ConcurrencyLimitLayer,
    pub(crate) timeout: AttemptTimeoutLayer,
}

impl ServerLayers {
    pub(crate) fn new(of_server: &OfServer, all: &LimitsConfig) -> Result<Self, InvalidConfig> {
        let rate = all
            .rate
            .with_tools(false)
            .with_per_principal(None)
            .with_in_all(of_server.calls_per_minute);
        let mut concurrency = ConcurrencyLimitLayer::new(of_server.max_concurrent)
            .with_max_waiting(of_server.max_waiting)
            .with_shed(of_server.shed);
        if let Some(places) = of_server.max_concurrent_per_tool {
            concurrency = concurrency.with_per_tool(places);
        }
        for (tool, places) in &of_server.max_concurrent_of {
            concurrency = concurrency.with_tool(tool.clone(), *places);
        }
        Ok(Self {
            rate: RateLimitLayer::new(rate)?,
            concurrency,
            timeout: AttemptTimeoutLayer::new().with_cap(all.progress_cap),
        })
    }
}

/// Where the limits of one server can be looked at.
#[derive(Debug)]
pub(crate) struct ServerHandles {
    pub(crate) rate: RateLimitLayer,
    pub(crate) concurrency: ConcurrencyHandle,
}

impl ServerHandles {
    pub(crate) fn status(&self, server: &ServerId) -> ServerLimitStatus {
        ServerLimitStatus {
            server: server.clone(),
            rate: self.rate.snapshot().into_iter().next(),
            concurrency: self.concurrency.status(),
        }
    }
}

/// What is known of a stack's limits: in force, waited for, refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The rates of tools and principals that were called upon.
    pub rates: Vec<RateStatus>,
    /// The limits of each server, in the order they were added.
    pub servers: Vec<ServerLimitStatus>,
}

/// What is known of one server's limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerLimitStatus {
    /// The server.
    pub server: ServerId,
    /// Its rate, if it has one.
    pub rate: Option<RateStatus>,
    /// Its places, and those of its tools.
    pub concurrency: ConcurrencyStatus,
}
