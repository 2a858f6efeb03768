//! Limits of rate, of concurrency and of time, around tools and their servers.
//!
//! [`rate`] limits calls per minute of tools, principals and servers, [`concurrency`] the calls in
//! flight at a server, and [`timeout`] the time of an attempt. Each layer works alone. A call waits
//! in order, in a bounded queue, and never past its deadline; a call that is refused was not sent.
//! [`principal`] refuses what one principal asks for too often, and nothing waits there.
//!
//! A layer is ready when its inner service is, and waits in the call's future. Order them rate,
//! concurrency, timeout, so that waiting for one limit uses up none of the others.
//!
//! ```
//! use callward_limit::{
//!     AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer,
//! };
//! use callward_testkit::MockService;
//! use tower::ServiceBuilder;
//!
//! let mut rate = RateLimitConfig::default();
//! rate.in_all = Some(600.0);
//! let server = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(rate)?)
//!     .layer(ConcurrencyLimitLayer::new(16))
//!     .layer(AttemptTimeoutLayer::new())
//!     .service(MockService::counting());
//! # Ok::<(), callward_core::InvalidConfig>(())
//! ```

pub mod concurrency;
mod latest_start;
mod permitted;
pub mod principal;
pub mod rate;
pub mod timeout;

pub use concurrency::{
    ConcurrencyHandle, ConcurrencyLimit, ConcurrencyLimitLayer, ConcurrencyStatus, PermitStatus,
    Shed,
};
pub use principal::{PrincipalLimit, PrincipalLimitConfig, PrincipalLimitLayer};
pub use rate::{RateLimit, RateLimitConfig, RateLimitLayer, RateStatus, RateSubject};
pub use timeout::{
    AttemptTimeout, AttemptTimeoutFuture, AttemptTimeoutLayer, Cap, TOOL_TIMEOUT_VAR,
    parse_tool_timeout,
};
