//! The limits, as a caller sees them, on a paused clock.

mod concurrency;
mod contract;
mod rate;
mod timeout;
