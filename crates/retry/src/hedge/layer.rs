//! The layer.

use std::sync::Arc;

use callward_core::InvalidConfig;
use tower_layer::Layer;

use super::shared::Shared;
use super::{Hedge, HedgeConfig, HedgeStats};
use crate::RetryLayer;

/// Puts a [`Hedge`] around a service. All services of one layer share measures, counts and budget.
///
/// The default is [`off`](Self::off).
#[derive(Debug, Clone, Default)]
pub struct HedgeLayer {
    shared: Option<Arc<Shared>>,
}

impl HedgeLayer {
    /// Makes a layer that stands alone, with a budget as [`RetryConfig`](crate::RetryConfig) has it
    /// by default. Beside a retry layer take [`RetryLayer::hedge`], so that both share one.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: HedgeConfig) -> Result<Self, InvalidConfig> {
        config.validate().map(|()| Self {
            shared: Some(Arc::new(Shared::new(config, None))),
        })
    }

    /// Makes a layer that hedges nothing, and costs a look at an empty pointer.
    #[must_use]
    pub const fn off() -> Self {
        Self { shared: None }
    }

    /// Says whether it hedges anything.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns what became of hedges so far.
    #[must_use]
    pub fn stats(&self) -> HedgeStats {
        let shared = self.shared.as_ref();
        shared.map_or_else(HedgeStats::default, |shared| shared.stats())
    }
}

impl RetryLayer {
    /// Makes the layer that hedges inside of this one, paid from the same budgets.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn hedge(&self, config: HedgeConfig) -> Result<HedgeLayer, InvalidConfig> {
        let budget = Some(self.policy().clone());
        config.validate().map(|()| HedgeLayer {
            shared: Some(Arc::new(Shared::new(config, budget))),
        })
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedge<S>;

    fn layer(&self, inner: S) -> Hedge<S> {
        Hedge::new(inner, self.shared.clone())
    }
}
