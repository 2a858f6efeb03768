//! The layer.

use tower_layer::Layer;

use callward_core::{InvalidConfig, ReplicaSetId};

use crate::{BudgetStatus, MakeSchedule, Retry, RetryConfig, RetryPolicy, RetryStats};

/// Puts a [`Retry`] around a service. All services of one layer share its budgets.
#[derive(Debug, Clone, Default)]
pub struct RetryLayer {
    policy: RetryPolicy,
}

impl RetryLayer {
    /// Makes a layer of these settings.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first setting that makes no sense.
    pub fn new(config: RetryConfig) -> Result<Self, InvalidConfig> {
        RetryPolicy::new(config).map(|policy| Self { policy })
    }

    /// Takes the pauses from somebody else's schedule in place of the config's
    /// [`backoff`](RetryConfig::backoff). To be said before the layer is used: its budgets start anew.
    #[must_use]
    pub fn with_schedule(self, schedule: impl MakeSchedule) -> Self {
        Self {
            policy: self.policy.with_schedule(schedule),
        }
    }

    /// Returns what is left of each budget, in the order of the replica sets' names.
    #[must_use]
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        self.policy.budgets()
    }

    /// Returns what became of calls whose first attempt failed.
    #[must_use]
    pub fn stats(&self) -> RetryStats {
        self.policy.stats()
    }

    /// Forgets the budgets of replica sets that are not kept. Calls on their way pay from the budget
    /// they found; a set that comes back starts with its reserve.
    pub fn retain_sets(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.policy.retain_sets(keep);
    }

    /// Says that a server of this set is back and its breakers are closed: calls that wait for one of
    /// them try at once, in the order of their jitter. Without it they wait for as long as the breaker
    /// said it would stay open.
    pub fn server_is_back(&self, set: &ReplicaSetId) {
        self.policy.server_is_back(set);
    }

    pub(crate) fn policy(&self) -> &RetryPolicy {
        &self.policy
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(inner, self.policy.clone())
    }
}
