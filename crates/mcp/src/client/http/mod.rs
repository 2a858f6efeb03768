//! Servers behind streamable HTTP.
//!
//! There is no connection to lose: requests are independent. What is kept is the session, which for
//! a modern server is only the knowledge that it is modern.

mod answer;
mod attend;
mod body;
mod client;
mod conn;
mod connect;
mod events;
mod exchange;
mod greeting;
mod link;
mod notices;
mod outgoing;
mod pool;
mod reports;
mod session;

pub(super) use connect::Connections;
#[cfg(fuzzing)]
pub(crate) use events::events;
pub(super) use link::HttpLink;
