//! The layer, and its settings.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::{InvalidConfig, ToolName};
use tower_layer::Layer;

use super::site::Site;
use super::{AdaptiveConfig, ConcurrencyLimit, Shed};

/// Puts a [`ConcurrencyLimit`] around a service. Each service it wraps gets a limit of its own.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimitLayer {
    pub(super) max_in_flight: usize,
    pub(super) max_waiting: usize,
    pub(super) shed: Shed,
    pub(super) per_tool: Option<usize>,
    pub(super) tools: HashMap<ToolName, usize>,
    pub(super) adaptive: Option<AdaptiveConfig>,
}

impl ConcurrencyLimitLayer {
    /// How many calls run at once by default.
    pub const DEFAULT_MAX_IN_FLIGHT: usize = 64;
    /// How many calls may wait by default.
    pub const DEFAULT_MAX_WAITING: usize = 1000;

    /// Lets this many calls run at once: at least 1. Up to 1000 more wait.
    #[must_use]
    pub fn new(max_in_flight: usize) -> Self {
        Self {
            max_in_flight: max_in_flight.clamp(1, MOST_PLACES),
            max_waiting: Self::DEFAULT_MAX_WAITING,
            shed: Shed::Newest,
            per_tool: None,
            tools: HashMap::new(),
            adaptive: None,
        }
    }

    /// Sets how many calls may wait, for the server and for each tool with places of its own; 0
    /// refuses whatever cannot run at once. Default: 1000.
    #[must_use]
    pub const fn with_max_waiting(mut self, max_waiting: usize) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// Sets who is refused when the line is full. Default: the newest.
    #[must_use]
    pub const fn with_shed(mut self, shed: Shed) -> Self {
        self.shed = shed;
        self
    }

    /// Sets how many calls of any one tool run at once: at least 1. Default: as many as there are
    /// places.
    #[must_use]
    pub fn with_per_tool(mut self, max_in_flight: usize) -> Self {
        self.per_tool = Some(max_in_flight.clamp(1, MOST_PLACES));
        self
    }

    /// Sets how many calls of one tool run at once, in the place of what holds for any one tool: at
    /// least 1.
    #[must_use]
    pub fn with_tool(mut self, tool: ToolName, max_in_flight: usize) -> Self {
        self.tools.insert(tool, max_in_flight.clamp(1, MOST_PLACES));
        self
    }

    /// Lets the number of places follow what the server bears. It begins with the number given to
    /// [`new`](Self::new), as far as that is within the bounds. Default: it does not move.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn with_adaptive(mut self, config: AdaptiveConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        self.adaptive = Some(config);
        Ok(self)
    }
}

/// More places than any server has calls; enough room is left for the gate's bit.
pub(super) const MOST_PLACES: usize = u32::MAX as usize;

impl Default for ConcurrencyLimitLayer {
    /// 64 calls at once, 1000 waiting.
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_IN_FLIGHT)
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimit<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S> {
        ConcurrencyLimit::at(inner, Arc::new(Site::new(self.clone())))
    }
}
