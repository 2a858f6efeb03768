//! Servers behind streamable HTTP, and behind the HTTP of 2024-11-05.
//!
//! There is no connection to lose: requests are independent. What is kept is the session, which for
//! a modern server is only the knowledge that it is modern, and for one of 2024-11-05 the stream on
//! which all answers come.

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
mod resume;
mod session;
mod sse;

pub(super) use connect::Connections;
#[cfg(fuzzing)]
pub(crate) use events::events;
pub(super) use link::HttpLink;
