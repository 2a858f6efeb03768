//! The router, through its public API.

mod affinity;
mod bed;
mod beside;
mod changes;
mod choice;
mod contract;
mod decision;
mod events;
mod fallback;
mod latency;
mod matching;
mod never_below;
mod pinned;
mod spread;
mod stats;
