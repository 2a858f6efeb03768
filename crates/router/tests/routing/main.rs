//! The router, through its public API.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod affinity;
mod bed;
mod changes;
mod choice;
mod decision;
mod fallback;
mod latency;
mod never_below;
mod pinned;
mod spread;
