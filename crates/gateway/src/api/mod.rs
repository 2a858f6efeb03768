//! What the command line asks a running gateway: over HTTP, on the admin listener.
//!
//! MCP has no place for what became of a call (server, cache, attempts), and results stay the bytes
//! they are. So `callward call`, `tools`, `explain`, `cache`, `breakers`, `limits`,
//! `servers` and `events` ask here.

mod body;
mod breakers;
mod cache;
mod client;
mod events;
mod find;
mod limits;
mod routes;
mod servers;

pub(crate) use client::Remote;
pub(crate) use find::{address, gateway};
pub(crate) use routes::routes;
