//! Limits of rate, of concurrency and of time, around tools and their servers.
//!
//! [`rate`] limits calls per minute of tools, principals and servers, [`concurrency`] the calls in
//! flight at a server, [`timeout`] the time of an attempt, [`principal`] what a principal asks for.
//! A call waits in order, in a bounded queue, never past its deadline; a refused one was not sent.
//!
//! Each layer works alone, is ready when its inner service is, and waits in the call's future.
//! Order them rate, concurrency, timeout, so that waiting for one uses up none of the others.
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
