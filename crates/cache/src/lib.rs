//! Answers repeatable calls without a server, and never with an answer from before a write.
//!
//! A read that was made before is answered from memory, identical concurrent reads run once, and the
//! repeat of an idempotent write is answered with the first one's result.
//!
//! # Rule
//!
//! The tool's plan decides, by its [`CacheRule`](callward_core::CacheRule). *A read is answered
//! from the cache if the same call by the same principal, at the same instance of the server, succeeded
//! within its lifetime, and nothing that it reads was written since that call began. A write is answered
//! from the cache only if its tool is idempotent and the very same write was the last thing written to
//! what it touches. While a write is in flight, and until one that may still land has settled
//! ([`settle`](CacheConfig::settle)), nothing that it may change is cached or shared.*
//!
//! A call reads and touches all state of its replica set's [`StateGroup`], by default everything behind
//! the cache, unless the operator's [`ScopeRules`] say otherwise.
//!
//! Only whole and successful answers within the size limit are kept: no error, no `isError`, no round
//! of an exchange. Calls are the same if their arguments are the same JSON value. A call whose arguments
//! two parsers may read differently (a member twice) is not cached.
//!
//! # Lifetime
//!
//! A lifetime counts from the dispatch of the call, as the state may change while it runs. The plan's
//! [`Lifetime`](callward_core::Lifetime) decides:
//!
//! - `Stated`: the TTL, whatever the server says.
//! - `Fixed`: the TTL. The server may shorten it: see [`Freshness`](callward_core::Freshness). This is
//!   the default of this layer alone.
//! - `Learned`: what the server says, up to the TTL, if it is trusted to. Else as long as repeated
//!   executions of the tool's calls almost never had another answer
//!   ([`stale_odds`](CacheConfig::stale_odds), [`EvidenceStatus`]). Some hits are executed instead, to verify
//!   that. Without evidence a result is served within the burst window
//!   ([`burst`](CacheConfig::burst)) only, and never to a session that has received it; a read joins
//!   a run that was dispatched within that window, or waits and shares the next run.
//!
//! Past its lifetime a result is served only with
//! [`stale_while_revalidate`](CacheConfig::stale_while_revalidate), while one background call fetches
//! a new one, or [`stale_if_error`](CacheConfig::stale_if_error), in the place of a failure of the server:
//! reads only, never from before a write, and marked under [`CACHE_META`](callward_core::CACHE_META).
//! Background calls need a tokio runtime.
//!
//! What changes past this cache shows when a lifetime ends.
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
//! ahead, so that a crowd before a failing server is through after a few rounds. Dropping a write that
//! was sent counts as an unknown outcome; dropping one that was not sent changes nothing.
//!
//! # Clone
//!
//! All clones, and all services one [`CacheLayer`] makes, share entries, flights, epochs and evidence.
//!
//! # Errors
//!
//! Adds one: [`DeadlineExceeded`](callward_core::ErrorKind::DeadlineExceeded), not sent, to a call
//! whose own deadline passes while it waits for an identical one.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_cache::{CacheConfig, CacheLayer};
//! use callward_testkit::{MockService, call, tool};
//! use tower::{Layer, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), callward_core::ToolError> {
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

mod config;
mod durations;
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
mod settling;
mod shared;
mod spelling;
mod stats;
mod store;
mod sync;
mod tools;
mod unsettled;
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
pub use unsettled::UnsettledState;
