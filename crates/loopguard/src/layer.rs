//! The layer.

use std::sync::Arc;

use callward_core::InvalidConfig;
use tower_layer::Layer;

use crate::shared::Shared;
use crate::{LoopGuard, LoopGuardConfig, LoopGuardStats};

/// Puts a [`LoopGuard`] around a service. All services of one layer share what failed.
#[derive(Debug, Clone)]
pub struct LoopGuardLayer {
    shared: Option<Arc<Shared>>,
}

impl LoopGuardLayer {
    /// Makes a layer of these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: LoopGuardConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self::of_valid(&config))
    }

    fn of_valid(config: &LoopGuardConfig) -> Self {
        Self {
            shared: Some(Arc::new(Shared::new(config))),
        }
    }

    /// Makes a layer that passes every call, and costs a look at an empty pointer.
    #[must_use]
    pub const fn off() -> Self {
        Self { shared: None }
    }

    /// Returns what it holds and did so far.
    #[must_use]
    pub fn stats(&self) -> LoopGuardStats {
        let shared = self.shared.as_ref();
        shared.map_or_else(LoopGuardStats::default, |shared| shared.stats())
    }
}

impl Default for LoopGuardLayer {
    fn default() -> Self {
        Self::of_valid(&LoopGuardConfig::default())
    }
}

impl<S> Layer<S> for LoopGuardLayer {
    type Service = LoopGuard<S>;

    fn layer(&self, inner: S) -> LoopGuard<S> {
        LoopGuard::new(inner, self.shared.clone())
    }
}
