//! Sends a slow read a second time, to another server, and takes the answer that comes first.
//!
//! A [`HedgeLayer`] is off unless it is added: it buys a shorter tail with a little more load. It
//! stands inside of [`Retry`](crate::Retry), so each attempt may have one second attempt beside it,
//! its hedge.
//!
//! # Rule
//!
//! Hedge only what changes nothing, only elsewhere, only when it is slower than nearly all of its
//! kind, and only if the budget pays.
//!
//! | of a call | hedged |
//! | --- | --- |
//! | read-only by its plan, and safe to retry | yes |
//! | anything else, idempotent writes too: two at a time may overtake each other | never |
//! | made by the runtime itself ([`Purpose`](callward_core::Purpose)): nobody waits for it | never |
//! | itself a hedge | never |
//!
//! *Slow* is measured: of each tool, the time which 95 of 100 first attempts do not exceed
//! ([`HedgeConfig::percentile`]), once it answered [`HedgeConfig::min_observations`] times. Attempts
//! that lost to their hedge, or that timed out, count with the time after which they were given up;
//! without them the slow would vanish from the measure, and the time would shrink until every call was
//! hedged.
//!
//! *Elsewhere* is what the router says: the first attempt tells which server has it
//! ([`ChosenServer`](callward_core::ChosenServer)), the hedge avoids that one and goes to a healthy
//! other or nowhere. An attempt that was not given to any server yet, because it waits at a limiter of
//! ours, is not hedged: a second one would wait behind it. Where nobody tells, as before a load balancer
//! that chooses by itself, [`HedgeConfig::unnamed_servers`] takes its word for it.
//!
//! *The budget* is the retry layer's own: a hedge takes a token of the same bucket as a retry, so the
//! two together stay within one share of the load. A hedge that was not sent gives its token back. A
//! layer that stands alone has a budget of its own.
//!
//! The first answer wins, also one that says `isError`; the other attempt is dropped, which cancels it at
//! its server. If one of the two fails, the other is awaited. If both fail, the first one's failure is
//! the call's, unless only the hedge was sent at all.
//!
//! # Readiness
//!
//! Ready when the inner service is. A hedge awaits readiness of the very value it calls.
//!
//! # Cancellation
//!
//! Dropping the future drops both attempts. Nothing runs on.
//!
//! # Clone
//!
//! Clones, and all services made by one layer and its clones, share measures, counts and budget.
//!
//! # Errors
//!
//! Adds none.
//!
//! # Telemetry
//!
//! That a hedge is sent, was not, and why, and that one won are events at debug level. The call's record
//! says what became of it ([`HedgeStatus`](callward_core::HedgeStatus)) and names the server whose
//! answer it is. [`HedgeLayer::stats`] counts.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_core::ToolOutput;
//! use callward_retry::RetryLayer;
//! use callward_retry::hedge::HedgeConfig;
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let retry = RetryLayer::default();
//! // no router tells which server has a call, but each call may go to another one
//! let hedge = retry.hedge(HedgeConfig::default().with_unnamed_servers(true))?;
//! let servers = MockService::new(|_, n| async move {
//!     if n == 30 {
//!         tokio::time::sleep(std::time::Duration::from_secs(60)).await;
//!     }
//!     Ok(ToolOutput::text("sunny"))
//! });
//! let service = ServiceBuilder::new()
//!     .layer(retry)
//!     .layer(hedge.clone())
//!     .service(servers);
//!
//! let read = tool("get_weather").read_only().build();
//! for _ in 0..40 {
//!     service.clone().oneshot(call(&read, json!({}))).await?;
//! }
//! assert_eq!(hedge.stats().won, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Inside of retry: both share a budget, and a hedge belongs to one attempt. Outside of the rate limit,
//! the attempt span, the router and the breakers: a hedge is an attempt and counts there. The wrong way
//! round, with this layer inside of the router, a hedge would go to the server that is slow.

mod config;
mod future;
mod layer;
mod measures;
mod quantile;
mod second;
mod service;
mod shared;

pub use config::HedgeConfig;
pub use future::HedgeFuture;
pub use layer::HedgeLayer;
pub use service::Hedge;
pub use shared::HedgeStats;
