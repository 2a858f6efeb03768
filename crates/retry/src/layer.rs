//! The layer and its service: `tower::retry` with a policy of ours.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use callward_core::{InvalidConfig, ReplicaSetId, ToolCall, ToolError, ToolOutput, ToolService};
use tokio::time::Instant;
use tower::retry::future::ResponseFuture;
use tower_layer::Layer;
use tower_service::Service;

use crate::shared::Shared;
use crate::{BudgetStatus, MakeSchedule, RetryConfig, RetryPolicy, RetryStats};

/// Puts a [`Retry`] around a service. All services of one layer share its budgets.
#[derive(Debug, Clone)]
pub struct RetryLayer {
    pub(crate) shared: Arc<Shared>,
}

impl RetryLayer {
    /// Makes a layer.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: RetryConfig) -> Result<Self, InvalidConfig> {
        config.validate()?;
        Ok(Self::of_valid(config, None))
    }

    fn of_valid(config: RetryConfig, schedule: Option<Arc<dyn MakeSchedule>>) -> Self {
        let shared = Arc::new(Shared::new(config, schedule));
        Self { shared }
    }

    /// Takes the pauses from a custom schedule in place of [`RetryConfig::backoff`]. Call it before
    /// the layer is used: its budgets start full.
    #[must_use]
    pub fn with_schedule(self, schedule: impl MakeSchedule) -> Self {
        Self::of_valid(self.shared.config, Some(Arc::new(schedule)))
    }

    /// Returns what is left of each budget, ordered by replica set.
    #[must_use]
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        self.shared.budgets.status()
    }

    /// Returns the outcomes of calls whose first attempt failed.
    #[must_use]
    pub fn stats(&self) -> RetryStats {
        *self.shared.stats.lock()
    }

    /// Drops the budgets of replica sets that are not kept. A set that returns starts with its
    /// reserve.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.shared.budgets.retain(keep);
    }

    /// Retries nothing from here on: the servers are about to end. It cannot be undone.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Wakes the calls that wait for a breaker of this set, as a server of it is connected again.
    pub fn server_is_back(&self, set: &ReplicaSetId) {
        let shared = &self.shared;
        let bucket = shared.budgets.bucket(set, &shared.config);
        bucket.server_is_back.notify_waiters();
    }
}

impl Default for RetryLayer {
    fn default() -> Self {
        Self::of_valid(RetryConfig::default(), None)
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        let policy = RetryPolicy::new(self.shared.clone());
        Retry {
            inner: tower::retry::Retry::new(policy.clone(), inner),
            policy,
        }
    }
}

/// Retries a failed call when that is safe.
///
/// ```
/// use callward_core::{Delivery, ErrorKind, ToolError, ToolOutput};
/// use callward_retry::RetryLayer;
/// use callward_testkit::{MockService, call, tool};
/// use serde_json::json;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), ToolError> {
/// let server = MockService::sequence(vec![
///     Err(ToolError::new(ErrorKind::Timeout, Delivery::Unknown, "no answer within 5s")),
///     Ok(ToolOutput::text("sunny")),
/// ]);
/// let service = ServiceBuilder::new().layer(RetryLayer::default()).service(server);
/// let weather = tool("get_weather").read_only().build();
/// let output = service.oneshot(call(&weather, json!({"city": "Oslo"}))).await?;
/// assert_eq!(output.to_text(), "sunny");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Retry<S> {
    inner: tower::retry::Retry<RetryPolicy, S>,
    /// The one that `inner` holds and does not expose.
    policy: RetryPolicy,
}

impl<S: ToolService> Service<ToolCall> for Retry<S> {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = ResponseFuture<RetryPolicy, S, ToolCall>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        // before the first attempt, so that all attempts have one key
        call.ensure_idempotency_key();
        let shared = &self.policy.shared;
        shared.share_out(&mut call, Instant::now(), 0);
        self.inner.call(call)
    }
}
