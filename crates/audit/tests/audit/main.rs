//! The records of the layer, and their verification.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bed;
mod concurrent;
mod contract;
mod crash;
mod records;
mod rotation;
mod tamper;
