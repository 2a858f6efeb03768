//! What the command line asks a running gateway: over HTTP, on the admin listener.
//!
//! One file for each subject: what it returns is the JSON of the route, of `--json`, and of the
//! table that a command shows. To add one: a function of the stack, its route, and a command.

pub(crate) mod breakers;
pub(crate) mod cache;
mod client;
mod events;
mod find;
mod limits;
mod routes;
pub(crate) mod servers;

pub(crate) use client::Remote;
pub(crate) use find::{address, gateway};
pub(crate) use routes::routes;
