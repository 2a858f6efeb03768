//! What is known of tokens that were shown before, by their digests: a token itself is never kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use callward_core::Caller;
use moka::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// The most tokens that are remembered.
const CAPACITY: u64 = 10_000;

/// The SHA-256 of a token.
pub(crate) type Digest = [u8; 32];

pub(crate) fn digest_of(token: &str) -> Digest {
    Sha256::digest(token).into()
}

/// Values of tokens, each for its time.
pub(crate) struct Known<T>(Cache<Digest, (T, Instant)>);

impl<T: Clone + Send + Sync + 'static> Known<T> {
    /// None is kept longer than `most`.
    pub(crate) fn new(most: Duration) -> Self {
        let cache = Cache::builder().max_capacity(CAPACITY).time_to_live(most);
        Self(cache.build())
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<T> {
        let (value, until) = self.0.get(digest)?;
        (Instant::now() < until).then_some(value)
    }

    pub(crate) fn keep(&self, digest: Digest, value: T, time: Duration) {
        self.0.insert(digest, (value, Instant::now() + time));
    }
}

impl Known<Arc<Caller>> {
    /// Keeps a caller for this time from `now`, or until its token expires if that is sooner.
    pub(crate) fn keep_caller(
        &self,
        digest: Digest,
        caller: Caller,
        most: Duration,
        now: SystemTime,
    ) -> Arc<Caller> {
        let left = caller.credential.expires.map_or(most, |at| {
            let left = at.duration_since(now);
            left.unwrap_or_default().min(most)
        });
        let caller = Arc::new(caller);
        if !left.is_zero() {
            self.keep(digest, caller.clone(), left);
        }
        caller
    }
}
