//! Replays recorded traffic through the cache layer and through simulators of other policies.
//!
//! Two kinds of recordings exist. *Keys* ([`KeyTrace`]) are bare requests, one key a line: they
//! show how well a bounded cache chooses what to keep. *Calls* ([`trace`], [`calls`]) are tool
//! calls with their arguments and a digest of each result: they also show whether a cached answer
//! was still right.
//!
//! The policy `callward` is the cache layer itself, over a service that answers at once and on a
//! paused clock. All other policies are simulators. The same recording gives the same figures.
//!
//! Nothing here prints: figures are a [`report::Grid`] for people, and serialize for programs.
//!
//! # Errors
//!
//! [`ReplayError`] names the file and the line.

pub mod calls;
mod capacity;
mod compare;
mod error;
mod input;
mod keys;
mod ours;
pub mod policies;
mod policy;
pub mod report;
pub mod trace;

pub use capacity::Capacity;
pub use compare::{Comparison, Gap, KeyFigures};
pub use error::ReplayError;
pub(crate) use input::Lines;
pub use keys::KeyTrace;
pub use ours::Ours;
pub use policy::Policy;
