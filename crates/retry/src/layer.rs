//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use callward_core::{InvalidConfig, ReplicaSetId};

use crate::shared::Shared;
use crate::{BudgetStatus, MakeSchedule, Retry, RetryConfig, RetryPolicy, RetryStats};

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

    /// Wakes the calls that wait for a breaker of this set, as a server of it is connected again.
    pub fn server_is_back(&self, set: &ReplicaSetId) {
        let shared = &self.shared;
        let bucket = shared.budgets.bucket(set, &shared.config);
        bucket.server_is_back.notify_waiters();
    }

    pub(crate) fn policy(&self) -> RetryPolicy {
        RetryPolicy::new(self.shared.clone())
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
        Retry::new(inner, self.policy())
    }
}
