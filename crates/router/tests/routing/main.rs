//! The router, through its public API.

mod bed;
mod beside;
mod choice;
mod decision;
mod events;
mod fallback;
mod filter;
mod latency;
mod spread;
mod stats;
