//! Replaying recorded calls, as users do: through the public face.
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

mod cases;
mod model;
mod properties;
mod recordings;
