//! The layer.

use callward_core::InvalidConfig;
use tower_layer::Layer;

use super::{RateLimit, RateLimitConfig, RateLimits};

/// Puts a [`RateLimit`] around a service. All services of one layer share its limits.
#[derive(Debug, Clone)]
pub struct RateLimitLayer {
    limits: RateLimits,
}

impl RateLimitLayer {
    /// Makes the layer and its limits.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: RateLimitConfig) -> Result<Self, InvalidConfig> {
        RateLimits::new(config).map(|limits| Self { limits })
    }

    /// Returns a handle that reads the limits.
    #[must_use]
    pub const fn limits(&self) -> &RateLimits {
        &self.limits
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::new(inner, self.limits.clone())
    }
}
