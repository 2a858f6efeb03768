//! Sends a slow read a second time, to another server, and takes the first answer.
//!
//! **Rule.** A call is hedged if it is read-only and safe to retry, neither in the background nor
//! itself a hedge, slower than [`HedgeConfig::percentile`] of its tool's recent calls, and if the
//! retry budget pays. The hedge goes to another server than the first attempt or nowhere; one that
//! was not sent returns its token. The first answer wins, and the other attempt is dropped. If one
//! attempt fails, the other is awaited; if both fail, the first one's failure is returned, unless
//! only the hedge was sent. Only the first attempt asks the client; a hedge that would is dropped.
//!
//! **Readiness** is that of the inner service. **Cancellation:** dropping the future drops both
//! attempts. **Clone:** services of one layer share latencies, counts and budget. **Errors:** none.
//!
//! **Order.** Inside retry, with which it shares a budget; outside rate limit and router.
//!
//! ```
//! use callward_retry::RetryLayer;
//! use callward_retry::hedge::HedgeConfig;
//! use callward_testkit::MockService;
//! use tower::ServiceBuilder;
//!
//! let retry = RetryLayer::default();
//! let hedge = retry.hedge(HedgeConfig::default())?;
//! let service = ServiceBuilder::new().layer(retry).layer(hedge).service(MockService::counting());
//! # Ok::<_, callward_core::InvalidConfig>(())
//! ```

mod client;
mod config;
mod future;
mod latency;
mod layer;

pub use config::HedgeConfig;
pub use layer::{Hedge, HedgeLayer, HedgeStats};
