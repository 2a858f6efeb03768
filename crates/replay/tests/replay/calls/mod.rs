//! Recorded calls.

mod cases;
mod model;
mod properties;
