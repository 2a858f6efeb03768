//! The router, through its public API.

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
