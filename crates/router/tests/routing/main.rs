//! The router, through its public API.

mod bed;
mod beside;
mod choice;
mod decision;
mod events;
mod fallback;
mod filter;
mod latency;
mod never_below;
mod pinned;
mod spread;
mod stats;
