//! How long answers are served.
//!
//! What the server says ([`expiry`]) only shortens what the plan allows. Beyond its lifetime an
//! answer is served only if the operator allows it, only to a read, only within the epochs it was
//! read under, and only with a mark in its `_meta`: see [`stale`].

mod expiry;
mod learned;
mod stale;

pub(crate) use expiry::Expiry;
pub(crate) use learned::Gate;
