//! The tools that all peers stand before: what they do, what they say of themselves, how they fail,
//! and how often each has run. The binary serves them over HTTP; layers are put around them in
//! process.

mod fault;
mod state;
mod tools;

pub use fault::{Dropped, Fault, Faults, Rule, Verdict};
pub use state::{Counts, State};
pub use tools::{ALL, Server, Work, find, hints, schema};
