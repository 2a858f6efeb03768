//! What the layer writes down, and what reading it back finds.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bench;
mod crash;
mod records;
mod rotation;
mod tamper;
