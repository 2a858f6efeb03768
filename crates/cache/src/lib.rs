//! Answers repeatable calls without a server, and never with a stale answer.
//!
//! A read that was made before is answered from memory; identical reads that run at the same time
//! run once; the immediate repeat of an idempotent write is answered with the first one's result.
//! Nobody who talks to servers through the cache alone can tell it is there, but by the speed.
//!
//! # Rule
//!
//! The tool's plan decides, by its [`CacheRule`](tollgate_core::CacheRule). *A read is answered
//! from the cache if the same call by the same principal succeeded within its lifetime, and nothing
//! that it reads was written since that call began. A write is answered from the cache only if
//! its tool is idempotent and the very same write, by the same principal, was the last thing written
//! to what it touches. While a write is in flight, and until one whose outcome is unknown has
//! settled (its attempt timeout), nothing that it may change is cached or shared.*
//!
//! What a call reads or touches is all state behind the cache, unless the operator's [`ScopeRules`] say
//! otherwise.
//!
//! Kept are whole and successful answers within the size limit: no error, no `isError`, no round of
//! an exchange. Arguments that two parsers may read differently (a member twice) make an uncached
//! call. Calls are the same if their arguments are, however they are spelt: order of members, white
//! space and escapes do not count.
//!
//! # What an answer says of itself
//!
//! A server may say that an answer must not be kept, or for how long: see
//! [`Freshness`](tollgate_core::Freshness). That only shortens what the plan allows. An answer that
//! must not be kept is not shared with identical calls that wait, either.
//!
//! # Beyond the rule
//!
//! Off unless the operator says otherwise, and for reads alone. *An answer whose lifetime is over is
//! still served for [`stale_while_revalidate`](CacheConfig::stale_while_revalidate), while one call in
//! the background fetches a new one; and for [`stale_if_error`](CacheConfig::stale_if_error) in the
//! place of a failure that is the server's own.* Never one from before a write, and never without a
//! mark: under [`CACHE_META`](tollgate_core::CACHE_META) in its `_meta` it says that it is stale, how
//! old it is and why it was given.
//!
//! Calls in the background go through the inner service like any other, with a
//! [`Purpose`](tollgate_core::Purpose) of their own, and run on when the caller leaves. They need a
//! tokio runtime; without one an ended answer is not served.
//!
//! # Readiness
//!
//! Always ready. A hit is answered inside `call`, without a box, a permit or a question to the
//! inner service; everything else readies a clone of the inner service inside the future.
//!
//! # Cancellation
//!
//! Dropping a read that others wait for hands the work over to one of them. Dropping one that waits
//! leaves no trace. A read that fails keeps its failure to itself and lets two of those that wait go
//! ahead, so that a crowd before a failing server is through after a few rounds. Dropping a write that was sent counts as an unknown outcome; dropping one that
//! was not sent yet changes nothing.
//!
//! # Clone
//!
//! All clones, and all services one [`CacheLayer`] makes, share entries, flights and epochs. Keys
//! are hashed under a secret of the layer, so entries of one layer mean nothing to another.
//!
//! # Errors
//!
//! Adds one: [`DeadlineExceeded`](tollgate_core::ErrorKind::DeadlineExceeded), not sent, to a call
//! whose own deadline passes while it waits for an identical one.
//!
//! # Telemetry
//!
//! Counts in [`CacheHandle::stats`] and, for each tool, in [`CacheHandle::tools`]; a
//! [`CacheEvent`] for each call and each result to whoever listens to [`CacheHandle::events`]; a
//! [`CacheStatus`](tollgate_core::CacheStatus) in the call's record if it has one, with the reason
//! of a bypass; a debug event where a write's outcome is unknown.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use tollgate_cache::{CacheConfig, CacheLayer};
//! use tollgate_testkit::{MockService, call, tool};
//! use tower::{Layer, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tollgate_core::ToolError> {
//! let layer = CacheLayer::new(CacheConfig::default());
//! let server = MockService::counting();
//! let cache = layer.layer(server.clone());
//!
//! let get = tool("get_order").read_only().build();
//! cache.clone().oneshot(call(&get, json!({"id": 7}))).await?;
//! cache.clone().oneshot(call(&get, json!({"id": 7}))).await?;
//! assert_eq!(server.started(), 1);
//!
//! let ship = tool("ship_order").build();
//! cache.clone().oneshot(call(&ship, json!({"id": 7}))).await?;
//! cache.oneshot(call(&get, json!({"id": 7}))).await?;
//! assert_eq!(server.started(), 3);
//! assert_eq!(layer.handle().stats().hits, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Outside: whoever decides who may call, and asks the human; a hit must skip neither. Inside:
//! retry, limits, routing; a hit must cost none of them. The wrong way round, a cache inside retry
//! takes each attempt of a write for a write of its own, and one outside the guard answers a caller
//! who may not call:
//!
//! ```text
//! guard -> confirm -> cache -> retry -> rate limit -> router     right
//! cache -> guard -> ...                                          answers whom the guard refuses
//! retry -> cache -> ...                                          waits again for a flight that failed
//! ```
//!
//! # What it does not see
//!
//! Whoever writes to the servers past this cache is not seen: what they change shows when the
//! lifetime of an entry ends, which begins with the answer. A write counts for its own replica set and for no other, unless a rule
//! names another.

mod config;
mod event;
mod evidence;
mod executions;
mod flight;
mod foresee;
mod fresh;
mod future;
mod handle;
#[cfg(all(test, shuttle))]
mod interleavings;
mod key;
mod layer;
mod principals;
mod read;
mod reason;
mod scope;
mod service;
mod shared;
mod spelling;
mod stats;
mod store;
mod sync;
mod tools;
mod write;

pub use config::{CacheConfig, Partition, StoreKind};
pub use event::{CacheEvent, Happened, StaleReason};
pub use evidence::{BucketStatus, EvidenceStatus};
pub use foresee::Foresight;
pub use future::CacheFuture;
pub use handle::CacheHandle;
pub use layer::CacheLayer;
pub use reason::{BypassReason, Bypasses, Cause, Evictions, RefusalReason, Refusals};
pub use scope::{InvalidScope, NamedScope, ScopeRules, ScopeTemplate, StateGroup, ToolScopes};
pub use service::Cache;
pub use stats::{CacheStats, Counts, ToolStats};
#[cfg(feature = "lean")]
pub use store::LeanStore;
pub use store::{Account, Admission, Entry, Found, Hit, MokaStore, Store, StoreUsage, Watcher};
