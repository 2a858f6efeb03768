//! The decision trail: what is reported of a call is what happened to it, and what was expected.
#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

mod agree;
mod bed;
mod kinds;
mod page;
mod retries;
