//! Limits around one server: of calls at once, and of time.
//!
//! Ordinary layers, each usable alone. Around one server they stand in this order, from outside to
//! inside: [`ConcurrencyLimit`], [`AttemptTimeout`], the server.

pub mod concurrency;
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
