//! A cache layer: answers repeatable calls without a server, and never with an answer from before a
//! write.
//!
//! # Rule
//!
//! The tool's plan decides, by its [`CacheRule`](callward_core::CacheRule). *A read is answered
//! from the cache if the same call by the same principal, at the same instance of the server,
//! succeeded within its lifetime, and nothing that it depends on was written since that call began.
//! A write is answered from the cache only if its tool is idempotent and the same write was the
//! last one to its scopes. While a write is in flight, and until one that may still land has
//! [settled](CacheConfig::settle), nothing that it may change is cached or shared.* By default
//! every call depends on all state and every write changes all state; [`ScopeRules`] narrow that.
//! The answer of a call whose client was asked something is for that call alone.
//!
//! Identical reads in flight run once. All services of one [`CacheLayer`] share entries, flights,
//! epochs and evidence; they are always ready. Without the feature `store`, which brings moka,
//! nothing is kept, and the cache is off unless a config turns it on.
//!
//! # Errors
//!
//! Adds [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded), not sent, if a call's
//! deadline passes while it waits for an identical one.
//!
//! **Order.** Inside authorization and approval, which a hit must not skip; outside retry, limits
//! and routing. See [`CacheLayer`] for an example.

mod config;
mod durations;
mod evidence;
mod executions;
mod flight;
mod fresh;
mod handle;
#[cfg(all(test, shuttle))]
mod interleavings;
mod key;
mod layer;
mod observed;
mod open_tasks;
mod preview;
mod principals;
mod read;
#[cfg_attr(
    not(feature = "store"),
    expect(dead_code, reason = "nothing is evicted")
)]
mod reason;
mod route;
mod scope;
mod service;
mod settling;
mod shared;
mod stats;
#[cfg_attr(not(feature = "store"), path = "store/none.rs")]
mod store;
mod sync;
mod tools;
mod unsettled;
mod write;

pub use config::{CacheConfig, Partition};
pub use evidence::{BucketStatus, EvidenceStatus};
pub use handle::CacheHandle;
pub use layer::CacheLayer;
pub use observed::Observed;
pub use preview::CachePreview;
pub use reason::{BypassReason, Bypasses, EvictionCause, Evictions, RefusalReason, Refusals};
pub use scope::{ScopeRules, ScopeTemplate, StateGroup, ToolScopes};
pub use service::{Cache, CacheFuture};
pub use stats::{CacheStats, Counts, StoreUsage, ToolStats};
pub use store::MokaStore;
pub use unsettled::UnsettledState;
