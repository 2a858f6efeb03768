//! What is counted for each principal.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callward_core::{Principal, ToolError};
use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::PrincipalLimitConfig;
use super::config::{Counted, LIMITS, RATES};
use super::limit::{Full, Limit};

/// How many principals are known.
const MAX_PRINCIPALS: usize = if cfg!(test) { 10 } else { 65_536 };
/// How often those that can be forgotten are looked for, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;

/// What is counted for one principal, or for those beyond the number that is known.
type Counts = Arc<Mutex<[u64; LIMITS]>>;

/// The limits, and what is counted for each principal.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) limits: [Limit; LIMITS],
    /// By a keyed hash: a name may be long.
    known: DashMap<u64, Counts>,
    others: Counts,
    start: Instant,
    /// When those that can be forgotten were looked for last.
    looked: AtomicU64,
}

impl Table {
    pub(super) fn new(config: &PrincipalLimitConfig) -> Self {
        Self {
            limits: config.named().map(|(name, max)| Limit::new(name, max)),
            known: DashMap::default(),
            others: Counts::default(),
            start: Instant::now(),
            looked: AtomicU64::new(0),
        }
    }

    /// Counts a request of a principal, in flight until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// The refusal of the limit that refuses for longest. Then nothing is counted.
    pub(super) fn admit(
        &self,
        principal: &Principal,
        counted: Counted,
    ) -> Result<Permit, ToolError> {
        let counts = self.of(principal);
        let now = self.now();
        let mut kept = counts.lock();
        let (mut next, mut refuser) = (*kept, None::<(&Limit, Full)>);
        let all = next.iter_mut().zip(&self.limits).zip(counted);
        for ((count, limit), _) in all.filter(|(_, is_counted)| *is_counted) {
            match limit.add(*count, now) {
                Ok(more) => *count = more,
                Err(full) if refuser.is_none_or(|(_, (wait, _))| wait < full.0) => {
                    refuser = Some((limit, full));
                }
                Err(_) => {}
            }
        }
        if let Some((limit, full)) = refuser {
            return Err(limit.refuse(full));
        }
        *kept = next;
        drop(kept);
        Ok(Permit { counts, counted })
    }

    fn of(&self, principal: &Principal) -> Counts {
        let key = self.known.hasher().hash_one(principal);
        if let Some(counts) = self.known.get(&key) {
            return counts.clone();
        }
        if self.known.len() >= MAX_PRINCIPALS {
            self.forget();
            if self.known.len() >= MAX_PRINCIPALS {
                return self.others.clone();
            }
        }
        self.known.entry(key).or_default().clone()
    }

    /// Forgets the principals whose counts are those of a new one, unless that was tried just now.
    fn forget(&self) {
        let (now, last) = (self.now(), self.looked.load(Ordering::Relaxed));
        let order = Ordering::Relaxed;
        let is_due = now.saturating_sub(last) >= PAUSE;
        if is_due
            && self
                .looked
                .compare_exchange(last, now, order, order)
                .is_ok()
        {
            self.known.retain(|_, counts| {
                // a call that is in flight or about to count has a clone
                let counts = Arc::get_mut(counts).map(Mutex::get_mut);
                counts.is_none_or(|counts| counts.iter().any(|count| *count > now))
            });
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A request in flight, until dropped.
#[derive(Debug)]
pub struct Permit {
    counts: Counts,
    counted: Counted,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        let in_flight = counts.iter_mut().zip(self.counted).skip(RATES);
        for (count, is_counted) in in_flight {
            *count = count.saturating_sub(is_counted.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use callward_core::Effect;
    use tokio::time::advance;

    use super::super::config::of_call;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_principals_resets_no_principal_and_takes_no_memory() {
        let config = PrincipalLimitConfig {
            calls_per_minute: NonZeroU32::new(2),
            ..PrincipalLimitConfig::default()
        };
        let table = Table::new(&config);
        let ask = |who: &str| table.admit(&Principal::new(who), of_call(Effect::ReadOnly));
        let held = (ask("held").unwrap(), ask("held").unwrap());
        // each has a complete bucket again after a minute
        for round in 0..3 {
            advance(Duration::from_secs(59)).await;
            assert!(ask("busy").is_ok() && ask("busy").is_ok(), "{round}");
            advance(Duration::from_secs(1)).await;
            let flood = (0..100).filter(|n| ask(&format!("{round} {n}")).is_ok());
            // eight are known beside the two from before, and the others share two tokens
            assert_eq!(flood.count(), 8 + 2, "{round}");
            assert_eq!(table.known.len(), 10);
            assert!(ask("busy").is_err(), "{round}");
        }
        drop(held);
        advance(Duration::from_secs(60)).await;
        drop(ask("new"));
        assert_eq!(table.known.len(), 1);
    }
}
