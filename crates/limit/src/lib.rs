//! Limits around tools and their servers: of rate, of calls at once, and of time.
//!
//! Three layers, each usable alone, each with a page of its own: [`rate`] holds tools, principals and
//! servers to so many calls a minute; [`concurrency`] lets a server have so many calls at once, and
//! lines up or sheds the others; [`timeout`] ends an attempt that its server does not get on with.
//!
//! # Rule
//!
//! Whoever must wait waits in order of arrival, never past the call's deadline nor the end of its
//! attempt, and in a line of bounded length or time. Who cannot be served is refused, certainly not
//! sent, with what is known of when to come again. What a call is held to is said by its plan and
//! the operator, by nothing else.
//!
//! # Readiness
//!
//! Each layer is ready when its inner service is: what a call needs is known only from the call, so
//! it is waited for in the call's future.
//!
//! # Cancellation
//!
//! A drop leaves a line, gives back a cell or a place, and drops the inner call. Nothing of it
//! remains, at whatever moment it comes.
//!
//! # Clone
//!
//! Clones of a service share its limits. See each module for what a layer's services share.
//!
//! # Errors
//!
//! | layer | kind | delivery |
//! | --- | --- | --- |
//! | rate | `RateLimited`, with the time to come again | not sent |
//! | concurrency | `Overloaded` | not sent |
//! | timeout, on arrival | `DeadlineExceeded`, or `Overloaded` if only the attempt is late | not sent |
//! | timeout | `Timeout`, or `DeadlineExceeded` at the call's deadline | unknown |
//!
//! # Telemetry
//!
//! [`RateLimits::snapshot`] and [`ConcurrencyHandle::status`] tell the limit in force, who runs and
//! waits, and how many were refused.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use callward_limit::{
//!     AttemptTimeoutLayer, ConcurrencyLimitLayer, RateLimitConfig, RateLimitLayer,
//! };
//! use callward_testkit::{MockService, call, tool};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(RateLimitConfig::for_server(600.0))?)
//!     .layer(ConcurrencyLimitLayer::new(16))
//!     .layer(AttemptTimeoutLayer::new())
//!     .service(MockService::counting());
//! let weather = tool("get_weather").read_only().build();
//! let output = server.oneshot(call(&weather, json!({"city": "Oslo"}))).await?;
//! assert_eq!(output.to_text(), "1");
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Outside to inside: rate, concurrency, timeout. The wrong way round, who waits for a turn holds a
//! place that others could use, and waiting for a place counts as the server's slowness. The rates
//! of tools and principals stand further out, above the router, inside of what repeats: each attempt
//! counts.

pub mod concurrency;
mod line;
pub mod rate;
mod sync;
pub mod timeout;

pub use concurrency::{
    Adaptive, AdaptiveConfig, ConcurrencyHandle, ConcurrencyLimit, ConcurrencyLimitFuture,
    ConcurrencyLimitLayer, ConcurrencyStatus, PlacesStatus, Sample, Shed, Signal,
};
pub use rate::{
    RateLimit, RateLimitConfig, RateLimitFuture, RateLimitLayer, RateLimits, RateStatus,
    RateSubject,
};
pub use timeout::{
    AttemptTimeout, AttemptTimeoutFuture, AttemptTimeoutLayer, Cap, InvalidToolTimeout,
    TOOL_TIMEOUT_VAR, TimeoutConfig, parse_tool_timeout,
};
