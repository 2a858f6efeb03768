//! The cache layer as a policy.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callward_cache::{CacheConfig, CacheHandle, CacheLayer};
use callward_core::{
    Effect, Profile, Tool, ToolCall, ToolError, ToolName, ToolOutput, ToolService,
};
use tokio::runtime::{self, Runtime};
use tower::util::BoxService;
use tower::{Layer, Service, service_fn};

use crate::calls::labelled_tool;
use crate::policies::Simulator;
use crate::{Capacity, ReplayError};

/// The cache layer of this project as a policy: each key is a call of a read-only tool, and a hit
/// is a call that does not reach the server.
///
/// It stands over a service that answers at once, on a paused clock. Its statistics are read after
/// each stored answer, which makes it evict at once: with a bound of a few entries, a late eviction
/// would be worth hits.
#[derive(Debug)]
pub struct Ours {
    runtime: Runtime,
    cache: BoxService<ToolCall, ToolOutput, ToolError>,
    handle: CacheHandle,
    tool: Arc<Tool>,
    asked: Arc<Asked>,
    charge: Charge,
    capacity: Capacity,
    kept: u64,
}

/// What the service behind the cache is asked for.
#[derive(Debug, Default)]
struct Asked {
    /// The length of the bodies.
    size: AtomicU32,
    answered: AtomicU64,
}

/// The shortest body: `{}`.
const MIN_BODY: u32 = 2;
/// Longer than any replay, so that results go only by eviction.
const TTL: Duration = Duration::from_secs(365 * 24 * 3600);

impl Ours {
    /// Builds a cache with a capacity in entries of one size, or in bytes with bodies of at most
    /// `largest` bytes.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Cache`] if it cannot be built.
    pub fn new(capacity: Capacity, largest: u32) -> Result<Self, ReplayError> {
        let largest = match capacity {
            Capacity::Entries(_) => MIN_BODY,
            // a body over the capacity is never kept
            Capacity::Bytes(bytes) => largest.min(u32::try_from(bytes).unwrap_or(u32::MAX)),
        };
        let asked = Arc::<Asked>::default();
        let charge = Charge::measure()?;
        let mut config = CacheConfig::default();
        // the same figures each time
        config.key_seed = Some(1);
        config.max_bytes = match capacity {
            Capacity::Entries(entries) => entries.saturating_mul(charge.of(MIN_BODY)),
            Capacity::Bytes(bytes) => bytes,
        };
        config.max_item_bytes = u64::MAX;
        let layer = CacheLayer::new(config);
        Ok(Self {
            runtime: paused()?,
            cache: BoxService::new(layer.layer(origin(largest, &asked))),
            handle: layer.handle(),
            tool: read_only()?,
            asked,
            charge,
            capacity,
            kept: 0,
        })
    }
}

fn read_only() -> Result<Arc<Tool>, ReplayError> {
    let mut profile = Profile::standard();
    profile.read_ttl = TTL;
    let name = ToolName::new("get").map_err(ReplayError::cache)?;
    Ok(Arc::new(labelled_tool(name, Effect::ReadOnly, &profile)))
}

/// Builds a runtime of one thread with a paused clock.
pub(crate) fn paused() -> Result<Runtime, ReplayError> {
    let mut builder = runtime::Builder::new_current_thread();
    let builder = builder.enable_time().start_paused(true);
    builder.build().map_err(ReplayError::cache)
}

/// The weight of an entry in the cache: the size of its body and the bookkeeping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge {
    overhead: u64,
}

impl Charge {
    /// Stores one entry to learn the overhead.
    pub(crate) fn measure() -> Result<Self, ReplayError> {
        let layer = CacheLayer::new(CacheConfig::default());
        let mut cache = layer.layer(origin(MIN_BODY, &Arc::default()));
        let _ = paused()?.block_on(cache.call(ToolCall::new(read_only()?, "{}")));
        let kept = layer.handle().stats().bytes;
        Ok(Self {
            overhead: kept.saturating_sub(u64::from(MIN_BODY)),
        })
    }

    /// Returns the weight of an entry with a body of `size` bytes.
    pub(crate) fn of(self, size: u32) -> u64 {
        u64::from(size.max(MIN_BODY)) + self.overhead
    }
}

impl Simulator for Ours {
    fn access(&mut self, key: u32, size: u64) -> bool {
        let size = size.saturating_sub(self.charge.overhead);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        self.asked.size.store(size, Ordering::Relaxed);
        let before = self.asked.answered.load(Ordering::Relaxed);
        let call = ToolCall::new(self.tool.clone(), format!("{{\"key\":{key}}}"));
        // the origin is always ready and never fails
        let _ = self.runtime.block_on(self.cache.call(call));
        let hit = self.asked.answered.load(Ordering::Relaxed) == before;
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

/// A service that answers each call at once, with a body of the current size.
fn origin(largest: u32, asked: &Arc<Asked>) -> impl ToolService + Sync + use<> {
    // blanks after an empty object: every prefix is a result, and all bodies share one buffer
    let mut blank = b"{}".to_vec();
    blank.resize(largest.max(MIN_BODY) as usize, b' ');
    let (blank, asked) = (Bytes::from(blank), asked.clone());
    service_fn(move |_: ToolCall| {
        asked.answered.fetch_add(1, Ordering::Relaxed);
        let size = asked.size.load(Ordering::Relaxed).max(MIN_BODY) as usize;
        let body = ToolOutput::from_json(blank.slice(..size.min(blank.len())));
        ready(Ok::<_, ToolError>(
            body.unwrap_or_else(|_| ToolOutput::text("")),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_exactly_its_capacity_of_entries() {
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
    fn an_entry_weighs_its_body_and_its_bookkeeping() {
        let capacity = Capacity::Bytes(1 << 20);
        for size in [0, 1, 2, 3, 1000, 100_000] {
            let mut ours = Ours::new(capacity, 100_000).unwrap();
            let charge = Charge::measure().unwrap().of(size);
            ours.access(1, charge);
            assert_eq!(ours.weight(), charge, "{size}");
        }
    }
}
