//! The limits, as a caller sees them, on a paused clock.

mod concurrency;
mod contract;
mod progress;
mod rate;
mod timeout;
