//! Breakers, their set and their layer.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod bed;
mod layer;
mod set;
