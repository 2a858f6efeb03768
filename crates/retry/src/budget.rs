//! What retries are paid from: a bucket of tokens for each replica set.
//!
//! Without a budget, three attempts for each call turn an outage into three times the load, just
//! when the server can bear it least. With one, each first attempt pays in a fraction of a token
//! and each retry takes out a whole one, so retries stay a fixed share of the traffic, however
//! many callers fail at once. There is one bucket for each replica set, because a retry may go to
//! any server of it, and none for the caller: it is the servers that are protected. A replica set is
//! what clients see as one server; a server that is in no set with others is a set of its own.
//!
//! So of any number of calls, at any moment, whatever failed: no more attempts were made than calls,
//! a fifth of them, and the reserve. Savings change nothing about that. They were paid in by calls
//! that needed no retry; the capacity only bounds how much of that can come at once.
//!
//! A retry is taken out when it is decided on, so that no two callers count on the same one, and
//! put back if it is not made: the caller went away during the pause. It is put back, too, if a
//! breaker or a limit of our own refused it, for it was no load on any server. A call that waits for a
//! breaker and got past no gate before takes nothing: sent at last, it is the call and no retry of it.
//! One that did get past keeps the retry that it was granted.
//!
//! A bucket does not fill by itself with time. A reserve that came back each second would be worth
//! more retries than the traffic of most agents, and would be the budget.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use callward_core::{ByTool, ReplicaSetId, Tool};
use tower::retry::budget::Budget;

use crate::RetryConfig;
use crate::sync::{AtomicU64, Ordering};

/// A budget of retries, behind tower's [`Budget`] trait. One atomic, no lock.
///
/// ```
/// use callward_retry::{RetryConfig, TokenBucket};
/// use tower::retry::budget::Budget;
///
/// let budget = TokenBucket::new(&RetryConfig::default().with_budget_reserve(1))?;
/// assert!(budget.withdraw(), "the reserve");
/// assert!(!budget.withdraw());
/// for _ in 0..5 {
///     budget.deposit();
/// }
/// assert!(budget.withdraw(), "five calls at 20 % pay for one retry");
/// # Ok::<_, callward_core::InvalidConfig>(())
/// ```
#[derive(Debug)]
pub struct TokenBucket {
    /// The balance in hundredths of a token in the upper half, the refusals in the lower.
    packed: AtomicU64,
    deposit: u32,
    capacity: u32,
    /// Calls of the set that wait for a breaker, or a server that is expected back, now.
    waiting: AtomicU64,
}

impl TokenBucket {
    /// Makes a bucket that holds the reserve.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`](callward_core::InvalidConfig) names the first setting that makes no sense.
    pub fn new(config: &RetryConfig) -> Result<Self, callward_core::InvalidConfig> {
        config.validate().map(|()| Self::of_valid(config))
    }

    fn of_valid(config: &RetryConfig) -> Self {
        let held = Held {
            balance: config.budget_reserve.saturating_mul(TOKEN),
            refused: 0,
        };
        Self {
            packed: AtomicU64::new(held.pack()),
            deposit: config.budget_percent,
            capacity: config.budget_capacity.saturating_mul(TOKEN),
            waiting: AtomicU64::new(0),
        }
    }

    /// Returns how many retries it would pay for now.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        self.held().balance / TOKEN
    }

    /// Returns how many retries it refused.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.held().refused
    }

    /// Puts a retry back that was taken out and not made.
    pub(crate) fn refund(&self) {
        self.add(TOKEN);
    }

    /// Pays in, up to the capacity.
    fn add(&self, amount: u32) {
        // a full bucket is the common case, and is only read
        let pay = |packed| {
            let mut held = Held::unpack(packed);
            if held.balance >= self.capacity {
                return None;
            }
            held.balance = held.balance.saturating_add(amount).min(self.capacity);
            Some(held.pack())
        };
        let _full = self
            .packed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
    }

    fn held(&self) -> Held {
        Held::unpack(self.packed.load(Ordering::Relaxed))
    }
}

impl Budget for TokenBucket {
    fn deposit(&self) {
        self.add(self.deposit);
    }

    fn withdraw(&self) -> bool {
        let take = |packed| {
            let mut held = Held::unpack(packed);
            match held.balance.checked_sub(TOKEN) {
                Some(left) => held.balance = left,
                None => held.refused = held.refused.saturating_add(1),
            }
            Some(held.pack())
        };
        // the closure never declines, so both arms hold what was there before
        let (Ok(before) | Err(before)) =
            self.packed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        Held::unpack(before).balance >= TOKEN
    }
}

/// What a bucket holds, unpacked.
#[derive(Clone, Copy)]
struct Held {
    balance: u32,
    refused: u32,
}

impl Held {
    const fn unpack(packed: u64) -> Self {
        Self {
            balance: (packed >> 32) as u32,
            refused: packed as u32,
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.balance) << 32 | u64::from(self.refused)
    }
}

/// A retry that is paid for and not yet made. Dropped before it is, it is put back.
#[derive(Debug)]
pub(crate) struct Hold(Option<Arc<TokenBucket>>);

impl Hold {
    /// The retry is made.
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

/// A call that waits for a breaker of its set, counted for as long as it does.
#[derive(Debug)]
pub(crate) struct Place {
    bucket: Arc<TokenBucket>,
    /// How many others waited when it began to.
    pub(crate) ahead: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.bucket.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is left of the budget of one replica set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// The replica set.
    pub set: ReplicaSetId,
    /// How many retries its budget would pay for now.
    pub tokens: u32,
    /// How many retries its budget refused.
    pub refused: u32,
}

/// The buckets, by replica set. Replica sets are named by configuration, not by callers, so the map
/// is small and hardly ever changes: it is read as a snapshot and replaced whole.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    by_set: ArcSwap<HashMap<ReplicaSetId, Arc<TokenBucket>>>,
    /// The same buckets, found by the tool: as long as the tool lives, whatever becomes of its set.
    by_tool: ByTool<Arc<TokenBucket>>,
}

impl Budgets {
    /// Does something with the bucket of a tool's set, made on first use. `config` is valid.
    pub(crate) fn with<T>(
        &self,
        tool: &Arc<Tool>,
        config: &RetryConfig,
        act: impl FnOnce(&TokenBucket) -> T,
    ) -> T {
        let look_up = || self.bucket(tool.set(), config);
        self.by_tool.with(tool, look_up, |bucket| act(bucket))
    }

    /// Takes a retry out of the bucket of a set, to be put back if it is not made.
    pub(crate) fn hold(&self, set: &ReplicaSetId, config: &RetryConfig) -> Option<Hold> {
        let bucket = self.bucket(set, config);
        bucket.withdraw().then(|| Hold(Some(bucket)))
    }

    /// Counts a call that begins to wait for a breaker.
    pub(crate) fn queue(&self, set: &ReplicaSetId, config: &RetryConfig) -> Place {
        let bucket = self.bucket(set, config);
        let ahead = bucket.waiting.fetch_add(1, Ordering::Relaxed);
        Place { bucket, ahead }
    }

    fn bucket(&self, set: &ReplicaSetId, config: &RetryConfig) -> Arc<TokenBucket> {
        if let Some(bucket) = self.by_set.load().get(set) {
            return bucket.clone();
        }
        let fresh = Arc::new(TokenBucket::of_valid(config));
        self.by_set.rcu(|map| {
            let mut map = HashMap::clone(map);
            map.entry(set.clone()).or_insert_with(|| fresh.clone());
            map
        });
        // somebody else may have been first: the bucket in the map is the one that counts
        self.by_set.load().get(set).cloned().unwrap_or(fresh)
    }

    /// Forgets the buckets of sets that are not kept. Who holds one goes on with it.
    pub(crate) fn retain(&self, keep: impl Fn(&ReplicaSetId) -> bool) {
        if self.by_set.load().keys().all(&keep) {
            return;
        }
        self.by_set.rcu(|map| {
            let mut map = HashMap::clone(map);
            map.retain(|set, _| keep(set));
            map
        });
    }

    pub(crate) fn status(&self) -> Vec<BudgetStatus> {
        let map = self.by_set.load();
        let mut all: Vec<_> = map
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

/// One retry, in the bucket's unit.
const TOKEN: u32 = 100;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use proptest::prelude::*;

    use callward_testkit::tool;

    use super::*;

    #[test]
    fn a_new_bucket_holds_the_reserve_and_counts_what_it_refuses() {
        let bucket = TokenBucket::new(&RetryConfig::default()).unwrap();
        let granted = (0..10).filter(|_| bucket.withdraw()).count();
        assert_eq!((granted, bucket.tokens(), bucket.refused()), (3, 0, 7));
    }

    #[test]
    fn savings_stop_at_the_capacity() {
        let bucket = TokenBucket::new(&RetryConfig::default()).unwrap();
        for _ in 0..10_000 {
            bucket.deposit();
        }
        assert_eq!(bucket.tokens(), 100);
    }

    #[test]
    fn threads_together_get_no_more_than_was_paid_in() {
        let bucket = TokenBucket::new(&RetryConfig::default()).unwrap();
        let granted = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        bucket.deposit();
                        if bucket.withdraw() {
                            granted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        // withdrawals keep up with deposits, so nothing is lost at the capacity
        let granted = granted.into_inner();
        assert_eq!(granted + bucket.tokens(), 3 + 4 * 1000 / 5);
        assert_eq!(granted + bucket.refused(), 4000);
    }

    #[test]
    fn all_who_come_first_to_a_set_find_one_bucket() {
        let (budgets, config) = (Budgets::default(), RetryConfig::default());
        let set = ReplicaSetId::new("a").unwrap();
        let granted = AtomicU32::new(0);
        let gate = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    gate.wait();
                    if let Some(hold) = budgets.hold(&set, &config) {
                        hold.spend();
                        granted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(granted.into_inner(), 3);
    }

    #[test]
    fn a_retry_that_is_not_made_is_put_back_and_one_that_is_made_is_not() {
        let (budgets, config) = (Budgets::default(), RetryConfig::default());
        let tool = tool("read").set("a").build();
        let set = tool.set();
        let left = || budgets.with(&tool, &config, TokenBucket::tokens);
        let held = budgets.hold(set, &config);
        assert_eq!(left(), 2, "nobody else counts on it");
        drop(held);
        assert_eq!(left(), 3);
        budgets.hold(set, &config).unwrap().spend();
        assert_eq!(left(), 2);
    }

    #[test]
    fn two_replica_sets_do_not_share_a_budget() {
        let (budgets, config) = (Budgets::default(), RetryConfig::default());
        let [of_a, of_b] = ["a", "b"].map(|set| tool("read").set(set).build());
        while budgets.with(&of_a, &config, TokenBucket::withdraw) {}
        assert!(budgets.with(&of_b, &config, TokenBucket::withdraw));
        let left: Vec<_> = budgets.status().iter().map(|set| set.tokens).collect();
        assert_eq!(left, [0, 2]);
    }

    proptest! {
        #[test]
        fn retries_never_exceed_reserve_and_share(
            percent in 0_u32..=1000,
            reserve in 0_u32..=100,
            pays in prop::collection::vec(any::<bool>(), 0..500),
        ) {
            let config = RetryConfig::default()
                .with_budget_percent(percent)
                .with_budget_reserve(reserve);
            let bucket = TokenBucket::new(&config).unwrap();
            let (mut paid, mut granted) = (0_u32, 0_u32);
            for pay in pays {
                if pay {
                    bucket.deposit();
                    paid += 1;
                } else if bucket.withdraw() {
                    granted += 1;
                }
                prop_assert!(granted * 100 <= reserve * 100 + paid * percent);
                prop_assert!(bucket.tokens() <= config.budget_capacity);
            }
        }
    }
}
