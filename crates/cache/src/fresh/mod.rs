//! How long answers are served.
//!
//! What the server says ([`expiry`]) only shortens what the plan allows. Beyond its lifetime an
//! answer is served only if the operator allows it, only to a read, only within the epochs it was
//! read under, and only with a mark in its `_meta`: while a new one is fetched ([`revalidate`]), or
//! because the server fails ([`if_error`]).

mod expiry;
mod if_error;
mod learned;
mod mark;
mod revalidate;

pub(crate) use expiry::Expiry;
pub(crate) use learned::{Gate, NotServed};
