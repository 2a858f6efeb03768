//! The retry budget: a token bucket per replica set.
//!
//! Each first attempt pays in a share of a token, and each retry takes a whole one, so that retries
//! stay a fixed share of the traffic: at any moment, attempts are at most calls, their share, and
//! the reserve. A retry takes its token when it is decided on and returns it if it is not sent, or
//! if a breaker or limit of our own refuses it. A bucket does not refill with time.

use std::collections::HashMap;
use std::sync::Arc;

use callward_core::ReplicaSetId;
use foldhash::fast::RandomState;
use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::RetryConfig;
use crate::sync::{AtomicU64, Ordering};

/// The retry budget of one replica set, without a lock.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// In hundredths of a token.
    balance: AtomicU64,
    refused: AtomicU64,
    deposit: u64,
    capacity: u64,
    /// Calls of the set that wait for a breaker, and what wakes them.
    waiting: AtomicU64,
    pub(crate) server_is_back: Notify,
}

impl TokenBucket {
    /// Makes a bucket that holds the reserve. `config` is valid.
    pub(crate) fn new(config: &RetryConfig) -> Self {
        Self {
            balance: AtomicU64::new(u64::from(config.budget_reserve) * TOKEN),
            refused: AtomicU64::new(0),
            deposit: u64::from(config.budget_percent),
            capacity: u64::from(config.budget_capacity) * TOKEN,
            waiting: AtomicU64::new(0),
            server_is_back: Notify::new(),
        }
    }

    /// Returns how many retries it pays for now.
    pub(crate) fn tokens(&self) -> u32 {
        saturate(self.balance.load(Ordering::Relaxed) / TOKEN)
    }

    /// Returns how many retries it refused.
    pub(crate) fn refused(&self) -> u32 {
        saturate(self.refused.load(Ordering::Relaxed))
    }

    /// Returns the token of a retry that was not sent.
    pub(crate) fn refund(&self) {
        self.add(TOKEN);
    }

    /// Pays in, up to the capacity.
    fn add(&self, amount: u64) {
        // a full bucket, the common case, is only read
        let add = |balance: u64| {
            let sum = (balance + amount).min(self.capacity);
            (balance < self.capacity).then_some(sum)
        };
        let _full = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Pays in the share of one call.
    pub(crate) fn deposit(&self) {
        self.add(self.deposit);
    }

    /// Takes the token of a retry. Returns `false` if there is none.
    pub(crate) fn withdraw(&self) -> bool {
        let take = |balance: u64| balance.checked_sub(TOKEN);
        let taken = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

/// The token of a retry that is not yet sent, returned on drop.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<TokenBucket>>);

impl Hold {
    /// Takes a token, if there is one.
    pub(crate) fn take(bucket: Arc<TokenBucket>) -> Option<Self> {
        bucket.withdraw().then(|| Self(Some(bucket)))
    }

    /// Keeps the token: the retry is sent.
    pub(crate) fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(bucket) = &self.0 {
            bucket.refund();
        }
    }
}

/// A call that waits for a breaker, counted until dropped.
#[derive(Debug)]
pub(crate) struct Waiting(pub(crate) Arc<TokenBucket>);

impl Waiting {
    /// Returns the call with the number of those that waited before it.
    pub(crate) fn join(bucket: Arc<TokenBucket>) -> (Self, u64) {
        let before = bucket.waiting.fetch_add(1, Ordering::Relaxed);
        (Self(bucket), before)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is left of the budget of one replica set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// The replica set.
    pub set: ReplicaSetId,
    /// How many retries the budget pays for now.
    pub tokens: u32,
    /// How many retries the budget refused.
    pub refused: u32,
}

/// The buckets by replica set, made on first use.
#[derive(Debug, Default)]
pub(crate) struct Budgets(RwLock<HashMap<ReplicaSetId, Arc<TokenBucket>, RandomState>>);

impl Budgets {
    /// Returns the bucket of a set. `config` is valid.
    pub(crate) fn bucket(&self, set: &ReplicaSetId, config: &RetryConfig) -> Arc<TokenBucket> {
        if let Some(bucket) = self.0.read().get(set) {
            return bucket.clone();
        }
        let mut buckets = self.0.write();
        let fresh = || Arc::new(TokenBucket::new(config));
        buckets.entry(set.clone()).or_insert_with(fresh).clone()
    }

    /// Drops the buckets of sets that are not kept. Calls in flight go on with theirs.
    pub(crate) fn retain(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        self.0.write().retain(|set, _| keep(set));
    }

    pub(crate) fn status(&self) -> Vec<BudgetStatus> {
        let buckets = self.0.read();
        let mut all: Vec<_> = buckets
            .iter()
            .map(|(set, bucket)| BudgetStatus {
                set: set.clone(),
                tokens: bucket.tokens(),
                refused: bucket.refused(),
            })
            .collect();
        all.sort_unstable_by(|a, b| a.set.cmp(&b.set));
        all
    }
}

fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One retry, in the bucket's unit.
const TOKEN: u64 = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Deposit,
        Spend,
        TakeAndReturn,
    }

    proptest! {
        /// Compared with a count of hundredths.
        #[test]
        fn a_bucket_counts_like_a_purse_with_a_bound(
            budget_percent in 0_u32..=1000,
            budget_reserve in 0_u32..=100,
            steps in prop::collection::vec(
                prop::sample::select(vec![Step::Deposit, Step::Spend, Step::TakeAndReturn]),
                0..500,
            ),
        ) {
            let config = RetryConfig {
                budget_percent,
                budget_reserve,
                ..RetryConfig::default()
            };
            let bucket = Arc::new(TokenBucket::new(&config));
            let (mut purse, mut refused) = (budget_reserve * 100, 0);
            for step in steps {
                match step {
                    Step::Deposit => {
                        bucket.deposit();
                        purse = (purse + budget_percent).min(config.budget_capacity * 100);
                    }
                    Step::Spend | Step::TakeAndReturn => {
                        let hold = Hold::take(bucket.clone());
                        prop_assert_eq!(hold.is_some(), purse >= 100);
                        refused += u32::from(hold.is_none());
                        if let (Some(hold), Step::Spend) = (hold, step) {
                            hold.spend();
                            purse -= 100;
                        }
                    }
                }
                prop_assert_eq!((bucket.tokens(), bucket.refused()), (purse / 100, refused));
            }
        }
    }
}
