//! The commands, one file each.

pub(crate) mod call;
pub(crate) mod demo;
pub(crate) mod explain;
mod from;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod tools;
