//! The retry layer and its hedges, as a caller sees them, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod backoff;
mod bed;
mod budget;
mod deadlines;
mod errors;
mod hedge;
mod pauses;
mod retries;
mod waiting;
