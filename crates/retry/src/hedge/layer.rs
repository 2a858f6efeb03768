//! The layer, and what its services share.

use std::sync::Arc;

use callward_core::{InvalidConfig, ToolCall};
use parking_lot::Mutex;
use tower_layer::Layer;

use super::latency::Latencies;
use super::{Hedge, HedgeConfig};
use crate::budget::TokenBucket;
use crate::{RetryLayer, shared};

/// Puts a [`Hedge`] around a service. All services of one layer share latencies and counts.
/// [`RetryLayer::hedge`] makes it.
///
/// The default is [`off`](Self::off).
#[derive(Debug, Clone, Default)]
pub struct HedgeLayer {
    shared: Option<Arc<Shared>>,
}

/// What all services of one layer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HedgeConfig,
    pub(super) latencies: Latencies,
    pub(super) stats: Mutex<HedgeStats>,
    /// The retry layer's: its budgets pay.
    budget: Arc<shared::Shared>,
}

/// What one layer's hedges came to, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HedgeStats {
    /// Not sent, for lack of budget.
    pub no_budget: u64,
    /// Not sent, because no other server could take the call.
    pub no_server: u64,
    /// Sent.
    pub sent: u64,
    /// Of those sent, how many answered first.
    pub won: u64,
}

impl HedgeLayer {
    /// Makes a layer that hedges nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { shared: None }
    }

    /// Returns what the hedges came to.
    #[must_use]
    pub fn stats(&self) -> HedgeStats {
        let shared = self.shared.as_ref();
        shared.map_or_else(HedgeStats::default, |shared| *shared.stats.lock())
    }
}

impl RetryLayer {
    /// Makes the layer that hedges inside this one, paid from the same budgets.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn hedge(&self, config: HedgeConfig) -> Result<HedgeLayer, InvalidConfig> {
        config.validate()?;
        let shared = Arc::new(Shared {
            config,
            latencies: Latencies::default(),
            stats: Mutex::default(),
            budget: self.shared.clone(),
        });
        Ok(HedgeLayer {
            shared: Some(shared),
        })
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedge<S>;

    fn layer(&self, inner: S) -> Hedge<S> {
        Hedge::new(inner, self.shared.clone())
    }
}

impl Shared {
    /// Returns the retry budget that pays for a hedge of this call.
    pub(super) fn bucket(&self, call: &ToolCall) -> Arc<TokenBucket> {
        self.budget.bucket(call)
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut HedgeStats)) {
        count(&mut self.stats.lock());
    }
}
