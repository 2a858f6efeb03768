//! The cache itself, asked for keys like any policy.

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use callward_cache::{Cache, CacheConfig, CacheHandle, CacheLayer};
use callward_core::{Profile, Tool, ToolCall, ToolError, ToolOutput};
use tokio::runtime::Runtime;
use tower_layer::Layer;
use tower_service::Service;

use crate::made::{paused, tool};
use crate::policies::Simulator;
use crate::{Capacity, ReplayError};

/// The cache layer of this project as a policy: each key is a call of a read-only tool, and a hit
/// is a call that does not reach the server.
///
/// It stands over a service that answers at once, on a clock that stands still. After each answer
/// that was stored it is asked for its figures, which makes it do its pending housekeeping: what
/// it keeps beyond its bound for a moment would be worth hits where the bound is a few entries.
pub struct Ours {
    runtime: Runtime,
    cache: Cache<Origin>,
    handle: CacheHandle,
    tool: Arc<Tool>,
    origin: Origin,
    charge: Charge,
    capacity: Capacity,
    kept: u64,
}

/// Answers each call at once, with a body of the size that was set.
#[derive(Debug, Clone)]
struct Origin {
    /// Blanks after an empty object: every prefix is a result, and all bodies share one memory.
    blank: Bytes,
    size: Arc<AtomicU32>,
    answered: Arc<AtomicU64>,
}

/// The shortest body: `{}`.
const SHORTEST: u32 = 2;
/// Longer than any replay: what is replayed is what is dropped to make room.
const TTL: Duration = Duration::from_secs(365 * 24 * 3600);

impl Ours {
    /// Builds a cache that keeps `capacity`: so many entries of one size, or so many bytes. Bodies
    /// are of up to `largest` bytes.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Cache`] if it cannot be built.
    pub fn new(capacity: Capacity, largest: u32) -> Result<Self, ReplayError> {
        let largest = match capacity {
            Capacity::Entries(_) => SHORTEST,
            // nobody keeps what is larger than everything
            Capacity::Bytes(bytes) => largest.min(u32::try_from(bytes).unwrap_or(u32::MAX)),
        };
        let origin = Origin::new(largest);
        let charge = Charge::ask()?;
        let mut config = CacheConfig::default();
        // the same figures each time
        config.key_seed = Some(1);
        config.max_bytes = match capacity {
            Capacity::Entries(entries) => entries.saturating_mul(charge.of(SHORTEST)),
            Capacity::Bytes(bytes) => bytes,
        };
        config.max_item_bytes = u64::MAX;
        let layer = CacheLayer::new(config);
        Ok(Self {
            runtime: paused()?,
            cache: layer.layer(origin.clone()),
            handle: layer.handle(),
            tool: read_only("get")?,
            origin,
            charge,
            capacity,
            kept: 0,
        })
    }

    fn ask(&mut self, key: u32, size: u32) {
        self.origin.size.store(size, Ordering::Relaxed);
        let call = ToolCall::new(self.tool.clone(), format!("{{\"key\":{key}}}"));
        // always ready, and its answers are the origin's, which never fails
        let answer = self.cache.call(call);
        let _ = self.runtime.block_on(answer);
    }
}

/// What the cache charges for an entry: the size of its body, and what is kept about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge {
    overhead: u64,
}

impl Charge {
    /// Asks the cache.
    pub(crate) fn ask() -> Result<Self, ReplayError> {
        let origin = Origin::new(SHORTEST);
        let layer = CacheLayer::new(CacheConfig::default());
        let get = read_only("get")?;
        let answer = layer.layer(origin).call(ToolCall::new(get, "{}"));
        let _ = paused()?.block_on(answer);
        let kept = layer.handle().stats().bytes;
        Ok(Self {
            overhead: kept.saturating_sub(u64::from(SHORTEST)),
        })
    }

    /// Returns what an entry with a body of `size` bytes is charged.
    pub(crate) fn of(self, size: u32) -> u64 {
        u64::from(size.max(SHORTEST)) + self.overhead
    }

    /// Returns the size of the body that is charged so much.
    fn body(self, charge: u64) -> u32 {
        u32::try_from(charge.saturating_sub(self.overhead)).unwrap_or(u32::MAX)
    }
}

fn read_only(name: &str) -> Result<Arc<Tool>, ReplayError> {
    let mut profile = Profile::standard();
    profile.read_ttl = TTL;
    tool("replay", name, &profile, |hints| {
        hints.read_only_hint = Some(true);
    })
}

impl Simulator for Ours {
    fn access(&mut self, key: u32, size: u64) -> bool {
        let size = self.charge.body(size);
        let before = self.origin.answered.load(Ordering::Relaxed);
        self.ask(key, size);
        let hit = self.origin.answered.load(Ordering::Relaxed) == before;
        if !hit {
            let stats = self.handle.stats();
            self.kept = match self.capacity {
                Capacity::Entries(_) => stats.entries,
                Capacity::Bytes(_) => stats.bytes,
            };
        }
        hit
    }

    fn weight(&self) -> u64 {
        self.kept
    }
}

impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Origin {
    fn new(largest: u32) -> Self {
        let largest = usize::try_from(largest.max(SHORTEST)).unwrap_or(usize::MAX);
        let mut blank = b"{}".to_vec();
        blank.resize(largest, b' ');
        Self {
            blank: blank.into(),
            size: Arc::default(),
            answered: Arc::default(),
        }
    }
}

impl Service<ToolCall> for Origin {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Ready<Result<ToolOutput, ToolError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        self.answered.fetch_add(1, Ordering::Relaxed);
        let size = self.size.load(Ordering::Relaxed).max(SHORTEST);
        let size = self.blank.len().min(size as usize);
        let body = self.blank.slice(..size);
        ready(Ok(
            ToolOutput::from_json(body).unwrap_or_else(|_| ToolOutput::text(""))
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(ours: &mut Ours, keys: &[u32]) -> Vec<bool> {
        keys.iter().map(|key| ours.access(*key, 1)).collect()
    }

    #[test]
    fn a_key_is_a_hit_when_it_comes_again() {
        let mut ours = Ours::new(Capacity::Entries(10), 0).unwrap();
        assert_eq!(hits(&mut ours, &[1, 2, 1, 2]), [false, false, true, true]);
        assert_eq!(ours.weight(), 2);
    }

    #[test]
    fn entries_are_as_many_as_were_asked_for() {
        for capacity in [0, 1, 2, 7, 100] {
            let mut ours = Ours::new(Capacity::Entries(capacity), 0).unwrap();
            for key in 0..1000 {
                ours.access(key, 1);
                assert!(ours.weight() <= capacity);
            }
            assert_eq!(ours.weight(), capacity);
        }
    }

    #[test]
    fn no_room_is_no_hit() {
        let mut ours = Ours::new(Capacity::Entries(0), 0).unwrap();
        assert_eq!(hits(&mut ours, &[1, 1, 1]), [false; 3]);
    }

    #[test]
    fn bytes_are_those_of_the_body_and_of_what_is_kept_about_it() {
        let capacity = Capacity::Bytes(1 << 20);
        for size in [0, 1, 2, 3, 1000, 100_000] {
            let mut ours = Ours::new(capacity, 100_000).unwrap();
            let charge = Charge::ask().unwrap().of(size);
            ours.access(1, charge);
            assert_eq!(ours.weight(), charge, "{size}");
        }
    }

    #[test]
    fn what_is_larger_than_everything_is_not_kept() {
        let mut ours = Ours::new(Capacity::Bytes(10_000), u32::MAX).unwrap();
        for _ in 0..2 {
            assert!(!ours.access(1, 20_000));
        }
        assert_eq!(ours.weight(), 0);
    }
}
