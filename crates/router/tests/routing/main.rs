//! The router, through its public API.

mod bed;
mod beside;
mod choice;
mod fallback;
mod filter;
mod latency;
mod spread;
