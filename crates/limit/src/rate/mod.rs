//! Limits of rate: how many calls a minute.
//!
//! **Rule.** A call needs a cell of each limit it falls under: that of its principal, that of its
//! tool (the plan's `calls_per_minute`), and that of all calls here. Cells come evenly, so many a
//! minute; a few that nobody took are kept, so that calls may come in bursts
//! ([`RateLimitConfig::burst`]). A call that finds none gets in line, first come, first served. If
//! its turn would come later than its deadline, or later than [`RateLimitConfig::max_wait`], it is
//! refused at once.
//!
//! **Readiness** is that of the inner service: which limits a call falls under is known only from
//! the call.
//!
//! **Cancellation.** A waiting call takes its cell when the cell is due and not before, so a drop
//! leaves the line and those behind move up. A cell taken from one limit while another is still
//! waited for is given back. A call has its place in line from when it is first polled.
//!
//! **Clone.** Clones of a layer, and all services it makes, share the limits.
//!
//! **Errors.** Adds [`RateLimited`](callward_core::ErrorKind::RateLimited), not sent. It says which
//! limit it was, and how long until the call's turn would have come.
//!
//! **Telemetry.** [`RateLimits::snapshot`] tells how many wait and how many were refused.
//!
//! **Cost.** A call that falls under no limit is looked at and passed on: no look-up, no clock, no
//! allocation. One that finds its cell costs a look-up, a look at the clock and one exchange of an
//! atomic per limit. Only a call that has to wait costs a box and a timer; of those in one line,
//! only the first looks whether a cell is due.
//!
//! ```
//! use serde_json::json;
//! use callward_core::{Delivery, ErrorKind};
//! use callward_limit::{RateLimitConfig, RateLimitLayer};
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = RateLimitConfig::default().with_max_wait(std::time::Duration::ZERO);
//! let service = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(config)?)
//!     .service(MockService::counting());
//! // twelve calls a minute: two at once, then one every five seconds
//! let search = tool("search").hint(|hints| hints.rate_limit_hint = Some(12.0)).build();
//! for _ in 0..2 {
//!     service.clone().oneshot(call(&search, json!({}))).await?;
//! }
//! let refused = service.oneshot(call(&search, json!({}))).await.unwrap_err();
//! assert_eq!((refused.kind(), refused.delivery()), (ErrorKind::RateLimited, Delivery::NotSent));
//! assert_eq!(refused.retry_after(), Some(std::time::Duration::from_secs(5)));
//! # Ok(())
//! # }
//! ```
//!
//! **Order.** Inside the retry layer, so that each attempt counts, and outside the attempt span and
//! the router. Around one server, outside of its concurrency limit: who waits for a cell must not
//! hold a place.

mod cell;
mod clock;
mod config;
mod future;
mod key;
mod lane;
mod lanes;
mod layer;
mod limits;
mod quota;
mod service;

pub use config::RateLimitConfig;
pub use future::RateLimitFuture;
pub use layer::RateLimitLayer;
pub use limits::{RateLimits, RateStatus, RateSubject};
pub use service::RateLimit;
