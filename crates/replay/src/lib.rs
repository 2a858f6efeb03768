//! Replays recorded traffic through the cache, and through policies to compare it with.
//!
//! Two kinds of recordings are read. *Keys* ([`KeyTrace`]) are bare requests, one key a line: they say
//! how well a bounded cache chooses what to keep. *Calls* ([`trace`], [`calls`]) are tool calls with their arguments and
//! what came back: they say whether what was kept was still right.
//!
//! What is measured as `callward` is the cache layer itself, the one that stands in a stack, over a
//! service that answers at once and on a clock that stands still. Everything it is compared with is
//! a small simulator without any state but its own: same recording in, same figures out.
//!
//! Nothing here prints. What was found is a [`report::Grid`], for people, and serialises, for
//! machines.

pub mod calls;
mod capacity;
mod compare;
pub mod day;
mod error;
mod input;
mod keys;
mod made;
mod mix;
mod ours;
mod plot;
pub mod policies;
mod policy;
mod random;
pub mod report;
mod table;
pub mod trace;
mod workload;

pub use capacity::{Capacity, InvalidCapacity};
pub use compare::{Comparison, KeyFigures};
pub use error::ReplayError;
pub use input::Lines;
pub use keys::KeyTrace;
pub use mix::{Mix, MixFigures};
pub use ours::Ours;
pub use plot::Plot;
pub use policy::{Policy, UnknownPolicy};
pub use table::Gap;
pub use workload::Workload;
