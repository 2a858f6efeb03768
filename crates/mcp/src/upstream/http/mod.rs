//! Servers behind streamable HTTP.
//!
//! There is no connection to lose: each request stands alone. What is kept is the session, which for
//! a modern server is only the knowledge that it is modern.

mod answer;
mod attend;
mod body;
mod client;
mod conn;
mod connect;
mod exchange;
mod link;
mod notices;
mod outgoing;
mod pool;
mod reports;
mod session;
mod sessions;

#[cfg(fuzzing)]
pub(crate) use body::events;
pub(super) use connect::Connections;
pub(super) use link::HttpLink;
