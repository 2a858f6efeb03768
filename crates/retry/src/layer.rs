//! The layer.

use std::sync::Arc;

use tower_layer::Layer;

use callward_core::{InvalidConfig, ReplicaSetId};

use crate::shared::Shared;
use crate::{BudgetStatus, MakeSchedule, Retry, RetryConfig, RetryPolicy, RetryStats};

/// Puts a [`Retry`] around a service. All services of one layer share its budgets.
#[derive(Debug, Clone, Default)]
pub struct RetryLayer {
    policy: RetryPolicy,
}

impl RetryLayer {
    /// Makes a layer.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(config: RetryConfig) -> Result<Self, InvalidConfig> {
        RetryPolicy::new(config).map(|policy| Self { policy })
    }

    /// Takes the pauses from a custom schedule in place of [`RetryConfig::backoff`]. Call it before
    /// the layer is used: its budgets start anew.
    #[must_use]
    pub fn with_schedule(self, schedule: impl MakeSchedule) -> Self {
        Self {
            policy: self.policy.with_schedule(schedule),
        }
    }

    /// Returns what is left of each budget, ordered by replica set.
    #[must_use]
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        self.policy.shared.budgets.status()
    }

    /// Returns the outcomes of calls whose first attempt failed.
    #[must_use]
    pub fn stats(&self) -> RetryStats {
        *self.policy.shared.stats.lock()
    }

    /// Drops the budgets of replica sets that are not kept. A set that returns starts with its
    /// reserve.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.policy.shared.budgets.retain(keep);
    }

    /// Wakes the calls that wait for a breaker of this set, as a server of it is connected again.
    pub fn server_is_back(&self, set: &ReplicaSetId) {
        let shared = &self.policy.shared;
        let bucket = shared.budgets.bucket(set, &shared.config);
        bucket.server_is_back.notify_waiters();
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.policy.shared.clone()
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(inner, self.policy.clone())
    }
}
