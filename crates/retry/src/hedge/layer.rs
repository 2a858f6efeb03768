//! The layer and its service.

use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{BoxFuture, InvalidConfig, ToolCall, ToolError, ToolOutput, ToolService};
use futures_util::future::Either;
use parking_lot::Mutex;
use tower_layer::Layer;
use tower_service::Service;

use super::HedgeConfig;
use super::future::{Output, hedged};
use super::latency::Latencies;
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
    pub(super) retry: Arc<shared::Shared>,
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
            retry: self.shared.clone(),
        });
        Ok(HedgeLayer {
            shared: Some(shared),
        })
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedge<S>;

    fn layer(&self, inner: S) -> Hedge<S> {
        Hedge {
            inner,
            shared: self.shared.clone(),
        }
    }
}

/// Sends a slow read a second time, to another server, and takes the first answer.
#[derive(Debug, Clone)]
pub struct Hedge<S> {
    inner: S,
    shared: Option<Arc<Shared>>,
}

impl<S: ToolService> Service<ToolCall> for Hedge<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Either<S::Future, BoxFuture<'static, Output>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let shared = self.shared.as_ref().filter(|_| may_hedge(&call));
        let Some(shared) = shared.cloned() else {
            return Either::Left(self.inner.call(call));
        };
        let hedge = call.clone();
        let server = call.attempt_mut().chosen.get_or_insert_default().clone();
        let first = self.inner.call(call);
        // the clone gets ready when the hedge is due
        let inner = self.inner.clone();
        Either::Right(Box::pin(hedged(shared, first, server, inner, hedge)))
    }
}

/// Returns `true` if a second attempt of the call may run beside the first.
fn may_hedge(call: &ToolCall) -> bool {
    let plan = call.plan();
    let is_safe = !plan.is_write() && plan.is_retryable() && !call.has_asked();
    is_safe && !call.is_background && !call.attempt().elsewhere_only
}
