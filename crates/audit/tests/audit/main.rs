//! The records of the layer, and their verification.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod allocations;
mod bed;
mod concurrent;
mod contract;
mod crash;
mod records;
mod rotation;
mod tamper;
