//! The registry: listings, names, options, pairs and bounds.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod bed;
mod bounds;
mod catalogue;
mod names;
mod review;
mod search;
mod verifiers;
