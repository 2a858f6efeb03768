//! Recordings of calls and keys, replayed through the public API.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod calls;
mod day;
mod freshness;
mod keys;
mod policies;
mod workload;
