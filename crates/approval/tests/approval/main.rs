//! Approvals, as callers and operators see them, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod bed;
mod client;
mod decisions;
#[cfg(feature = "store")]
mod file;
mod grants;
#[cfg(feature = "store")]
mod kills;
mod layer;
mod model;
mod questions;
mod rounds;
