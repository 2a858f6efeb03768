//! How long answers are right, what is served beyond that, and how it is found out.
//!
//! An answer's own word ([`lifetime`]) only shortens what its plan allows. Beyond its lifetime an
//! answer is served only where the operator says so, only to a read, only within the epochs it was
//! read under, and only with a mark in its `_meta`: while a new one is fetched ([`revalidate`]), or
//! because the server fails ([`if_error`]).

mod busy;
mod if_error;
mod learned;
mod lifetime;
mod mark;
mod revalidate;

pub(crate) use busy::Busy;
pub(crate) use learned::{Executed, Gate, NotServed};
pub(crate) use lifetime::Lifetime;
